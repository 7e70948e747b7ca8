"""Calls of DataLoader: a sampler in the place of shuffling."""

from __future__ import annotations

from transplt.trees.calls import behind, comma, tight
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Transform

#: The place of `shuffle` among the arguments of DataLoader.
_SHUFFLE = 2


def with_sampler(sampler: str, dataset: str) -> Transform:
    """Give a loader a sampler, in the place of `shuffle` where that is given, and its dataset another name if there is
    one.
    """

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        args = list(call.args)
        value = cst.parse_expression(sampler)
        new = cst.Arg(value, keyword=cst.Name("sampler"), equal=tight())
        for index, arg in enumerate(args if dataset else ()):
            if (arg.keyword is None and index == 0) or (arg.keyword is not None and arg.keyword.value == "dataset"):
                args[index] = arg.with_changes(value=cst.Name(dataset))
                break
        kept = [arg for arg in args if arg.keyword is None or arg.keyword.value not in ("sampler", "batch_sampler")]
        at = next((i for i, arg in enumerate(kept) if arg.keyword is not None and arg.keyword.value == "shuffle"), None)
        if at is None:
            positional = [i for i, arg in enumerate(kept) if arg.keyword is None and not arg.star]
            at = positional[_SHUFFLE] if len(positional) == _SHUFFLE + 1 else None
        if at is not None:
            equal = kept[at].equal if isinstance(kept[at].equal, cst.AssignEqual) else tight()
            kept[at] = kept[at].with_changes(keyword=cst.Name("sampler"), equal=equal, value=value)
            return call.with_changes(args=kept)
        place = next((i for i, arg in enumerate(kept) if arg.star == "**"), len(kept))
        if place < len(kept):
            before = kept[place - 1].comma if place and isinstance(kept[place - 1].comma, cst.Comma) else comma()
            kept.insert(place, new.with_changes(comma=before))
        elif kept:
            kept[-1:] = behind(kept, new)
        else:
            raise CannotRewrite("the loader has no arguments")
        return call.with_changes(args=kept)

    return transform
