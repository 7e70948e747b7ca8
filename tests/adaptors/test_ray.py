"""The adaptor of ray: tasks ask for NPUs."""

from __future__ import annotations

import pytest

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered


def test_tasks_actors_and_ids() -> None:
    check_adapted(
        "ray",
        """
        import ray

        ray.init(num_cpus=4, num_gpus=8)


        @ray.remote(num_cpus=1, num_gpus=0.5, max_retries=2)
        class Actor:
            def cards(self):
                return ray.get_gpu_ids()


        actor = Actor.options(num_gpus=1 + EXTRA).remote()
        """,
        """
        import ray

        ray.init(num_cpus=4, resources={"NPU": 8})


        @ray.remote(num_cpus=1, resources={"NPU": 0.5}, max_retries=2)
        class Actor:
            def cards(self):
                return [int(card) for card in ray.get_runtime_context().get_accelerator_ids()["NPU"]]


        actor = Actor.options(resources={"NPU": 1 + EXTRA}).remote()
        """,
    )


def test_what_is_computed_or_stands_beside_resources() -> None:
    """An actor whose class asks for an NPU would wait for a GPU too, were its options left."""
    check_adapted(
        "ray",
        """
        import ray


        @ray.remote(num_gpus=1)
        class Actor:
            pass


        def start(count, more):
            first = Actor.options(num_cpus=count, num_gpus=count, resources=more, name="first").remote()
            second = Actor.options(
                num_gpus=count,
                resources={"node": 1},
            ).remote()
            third = Actor.options(num_gpus=count).remote()
            return first, second, third, Actor.options(num_gpus=0).remote()
        """,
        """
        import ray

        import npu_port


        @ray.remote(resources={"NPU": 1})
        class Actor:
            pass


        def start(count, more):
            first = Actor.options(num_cpus=count, resources=npu_port.npus_of_ray(count, more), name="first").remote()
            second = Actor.options(
                resources=npu_port.npus_of_ray(count, {"node": 1}),
            ).remote()
            third = Actor.options(resources=npu_port.npus_of_ray(count)).remote()
            return first, second, third, Actor.options(resources={"NPU": 0}).remote()
        """,
    )


def test_bundles() -> None:
    check_adapted(
        "ray",
        """
        from ray import tune
        from ray.util.placement_group import placement_group

        bundles = [{"CPU": 1, "GPU": 1} for _ in range(4)]
        group = placement_group(bundles, strategy="PACK")
        one = placement_group([{'GPU': 1, 'CPU': 2}])
        tuner = tune.Tuner(tune.with_resources(train, {"cpu": 2, "gpu": 1}))
        tune.run(train, resources_per_trial={"gpu": 0.5})
        """,
        """
        from ray import tune
        from ray.util.placement_group import placement_group

        bundles = [{"CPU": 1, "NPU": 1} for _ in range(4)]
        group = placement_group(bundles, strategy="PACK")
        one = placement_group([{'NPU': 1, 'CPU': 2}])
        tuner = tune.Tuner(tune.with_resources(train, {"cpu": 2, "NPU": 1}))
        tune.run(train, resources_per_trial={"NPU": 0.5})
        """,
    )


def test_what_is_asked_for_by_the_name_of_a_resource() -> None:
    check_adapted(
        "ray",
        """
        import ray

        first = ray.get_runtime_context().get_accelerator_ids()["GPU"][0]
        every = ray.cluster_resources()["GPU"]
        free = ray.available_resources().get('GPU', 0)
        cores = ray.cluster_resources()["CPU"]
        """,
        """
        import ray

        first = ray.get_runtime_context().get_accelerator_ids()["NPU"][0]
        every = ray.cluster_resources()["NPU"]
        free = ray.available_resources().get('NPU', 0)
        cores = ray.cluster_resources()["CPU"]
        """,
    )
    others = "import ray\n\nheld = shop.available_resources()['GPU']\n"
    check_not_adapted("ray", others, open_codes=["NPU147"])


def test_bundles_that_a_variable_holds_in_turn() -> None:
    check_adapted(
        "ray",
        """
        from ray.util.placement_group import placement_group


        def groups(count):
            bundles = [{"GPU": 1} for _ in range(count)]
            first = placement_group(bundles)
            bundles = [{"GPU": 2}]
            return first, placement_group(bundles)
        """,
        """
        from ray.util.placement_group import placement_group


        def groups(count):
            bundles = [{"NPU": 1} for _ in range(count)]
            first = placement_group(bundles)
            bundles = [{"NPU": 2}]
            return first, placement_group(bundles)
        """,
    )


def test_bundles_that_come_from_elsewhere_too_stay() -> None:
    for other in ("bundles += more", "for bundles in more:\n    pass", "bundles, rest = more"):
        source = f"import ray\n\nbundles = [{{'GPU': 1}}]\n{other}\nray.util.placement_group(bundles)\n"
        check_not_adapted("ray", source, open_codes=["NPU147"])


def test_it_is_offered() -> None:
    assert offered("import ray\n\nactor = Actor.options(num_gpus=1).remote()\n") == [("NPU147", 3, "ray")]
    assert offered("import ray\n\nactor = Actor.options(num_gpus=count).remote()\n") == [("NPU147", 3, "ray")]
    assert offered("import ray\n\nray.init(num_gpus=count)\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "ray.init(num_gpus=args.gpus)",
        "actor = Actor.options(num_gpus=read(), resources={'node': 1}).remote()",
        "data = data.map_batches(run, num_gpus=count)",
        "actor = Actor.options(num_gpus=1, **more).remote()",
        "from ray.train import ScalingConfig\nscaling = ScalingConfig(num_workers=2, use_gpu=True)",
        "ray.init(num_gpus=1)  # transplt: ignore[NPU878]",
    ],
)
def test_what_is_not_sure_keeps_its_finding(line: str) -> None:
    check_not_adapted("ray", f"import ray\n\n{line}\n", open_codes=["NPU147"])


def test_others_numbers_stay() -> None:
    check_not_adapted("ray", "import arrays\n\nmade = arrays.options(num_gpus=1)\n")
    check_not_adapted("ray", "import ray\n\nray.init(num_gpus=0)\nsizes = {'GPU': 1}\n")
    check_not_adapted("ray", "import ray\n\nray.init(num_gpus=1)\n", open_codes=["NPU147"], pins=(("ray", "==2.8.1"),))


def test_groups_of_actors_by_the_backend_of_ray_ascend() -> None:
    check_adapted(
        "ray",
        """
        import ray
        from ray.util import collective


        class Worker:
            def join(self, size, rank, backend="nccl"):
                collective.init_collective_group(size, rank, backend, "weights")
                collective.init_collective_group(size, rank=rank, backend="nccl", group_name="others")
                collective.init_collective_group(size, rank)
                collective.init_collective_group(size, rank, backend="gloo")

            def send(self, weight):
                collective.broadcast(weight, 0, group_name="weights")
        """,
        """
        import ray
        from ray.util import collective

        import npu_port


        class Worker:
            def join(self, size, rank, backend="nccl"):
                collective.init_collective_group(size, rank, npu_port.ray_backend(backend), "weights")
                collective.init_collective_group(size, rank=rank, backend=npu_port.ray_backend(), group_name="others")
                collective.init_collective_group(size, rank, backend=npu_port.ray_backend())
                collective.init_collective_group(size, rank, backend="gloo")

            def send(self, weight):
                collective.broadcast(weight, 0, group_name="weights")
        """,
    )


def test_actors_that_the_driver_puts_into_a_group_register_where_they_join() -> None:
    check_adapted(
        "ray",
        """
        import ray
        import ray.util.collective as col


        class Worker:
            def sum(self, x, more):
                if more:
                    col.allreduce(x, "g")
                return x


        def main(workers):
            col.create_collective_group(workers, 2, [0, 1], backend="nccl", group_name="g")
        """,
        """
        import ray
        import ray.util.collective as col

        import npu_port


        class Worker:
            def sum(self, x, more):
                if more:
                    npu_port.ray_backend()
                    col.allreduce(x, "g")
                return x


        def main(workers):
            col.create_collective_group(workers, 2, [0, 1], backend=npu_port.ray_backend(), group_name="g")
        """,
    )


def test_older_rays_have_no_registry_of_collectives() -> None:
    source = """
        from ray.util import collective

        collective.init_collective_group(2, 0, "nccl")
        """
    check_not_adapted("ray", source, open_codes=["NPU302"], pins=(("ray", "==2.47.1"),))
    assert offered(source) == [("NPU302", 3, "ray")]
    through = """
        from ray.util import collective


        def join(backend="nccl"):
            collective.init_collective_group(2, 0, backend)
        """
    check_not_adapted("ray", through, open_codes=["NPU302"], pins=(("ray", "==2.47.1"),))
