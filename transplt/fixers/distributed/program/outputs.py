"""Calls that write, print or log."""

from __future__ import annotations

import ast

from transplt.program.program import File, Program
from transplt.program.variable_values import assigned
from transplt.syntax.nodes import argument_at, arguments_of, attribute_of, keyword_of, last_name
from transplt.syntax.scan import parent

_REMOVES = frozenset(
    "os.remove os.rename os.replace os.unlink os.rmdir os.removedirs shutil.rmtree shutil.move".split()
)
_FULL = _REMOVES | frozenset(
    "torch.save print numpy.save numpy.savez numpy.savez_compressed numpy.savetxt json.dump pickle.dump yaml.dump "
    "joblib.dump os.link os.symlink shutil.copy shutil.copyfile shutil.copy2 shutil.copytree "
    "imageio.imwrite imageio.imsave imageio.mimwrite imageio.mimsave imageio.v2.imwrite imageio.v2.mimwrite "
    "imageio.v3.imwrite cv2.imwrite scipy.io.wavfile.write scipy.io.savemat scipy.misc.imsave soundfile.write "
    "skimage.io.imsave librosa.output.write_wav torchaudio.save torchvision.io.write_video torch.onnx.export "
    "torchvision.utils.save_image safetensors.torch.save_file matplotlib.pyplot.savefig pprint.pprint".split()
)
_LAST = frozenset(
    "to_csv to_pickle save_pretrained write_text write_bytes imwrite imsave save_image savefig add_scalar add_scalars "
    "add_image add_images add_figure add_graph add_histogram add_text add_hparams add_embedding add_video add_audio "
    "set_postfix set_description unlink".split()
)
_WRITES = frozenset("write writelines dump print save writerow writerows flush writeheader".split())
_SHOWS = frozenset("sys.stdout.write sys.stderr.write os.fsync click.echo click.secho typer.echo typer.secho".split())
#: Progress bars, and writers of TensorBoard.
PROGRESS = frozenset("tqdm.tqdm tqdm.trange tqdm.auto.tqdm tqdm.auto.trange tqdm.notebook.tqdm tqdm.std.tqdm".split())


def shown(file: File, node: ast.expr) -> ast.expr:
    """What a progress bar goes over; any other expression itself."""
    while isinstance(node, ast.Call) and node.args and file.names.qualified(node.func) in PROGRESS:
        node = node.args[0]
    return node


WRITERS = frozenset(
    "torch.utils.tensorboard.SummaryWriter torch.utils.tensorboard.writer.SummaryWriter "
    "tensorboardX.SummaryWriter".split()
)
#: What opens a file as a stream of bytes or text, which may be os.devnull.
_STREAMS = frozenset("io.open codecs.open gzip.open gzip.GzipFile bz2.open bz2.BZ2File lzma.open lzma.LZMAFile".split())
_OPENERS = frozenset({name.partition(".")[2] for name in _STREAMS})
_LOG = frozenset("debug info warning error critical log exception".split())
_FETCHES = frozenset(
    "urllib.request.urlretrieve urllib.request.urlopen wget.download gdown.download requests.get".split()
)


def fetches(file: File, call: ast.Call) -> bool:
    """True for a call that loads from the net."""
    return (file.names.qualified(call.func) or "").removeprefix("six.moves.") in _FETCHES


def opened(file: File, call: ast.Call) -> ast.expr | None:
    """The path that a call opens to write, as `logging` does for a log."""
    match file.names.qualified(call.func):
        case "logging.basicConfig":
            return keyword_of(call, "filename")
        case "logging.FileHandler":
            return argument_at(call, 0, "filename")
    return call.args[0] if opens_to_write(file, call) else None


def opens_to_write(file: File, call: ast.Call) -> bool:
    """True for `open(path, "w")`, `gzip.open(path, "wb")` and the like."""
    mode = argument_at(call, 1, "mode")
    named = getattr(call.func, "id", "") == "open"
    named = named or (last_name(call.func) in _OPENERS and file.names.qualified(call.func) in _STREAMS)
    return named and bool(call.args) and isinstance(mode, ast.Constant) and bool(set(str(mode.value)) & set("wax"))


def writes_file(file: File, call: ast.Call) -> bool:
    """True for a call that writes a file of its own, a checkpoint or a picture."""
    name = file.names.qualified(call.func) or ""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return (name in _FULL and "print" not in name) or (last in _LAST and not last.startswith(("add_", "set_")))


#: Which argument of a writing call is the path (or the file), where it is not the first.
_PLACE = {
    **dict.fromkeys(
        "save save_image dump save_file replace rename link symlink move copy copy2 copyfile copytree".split(), 1
    ),
    "export": 2,
    "numpy.save": 0,
}
_PATH_NAMES = ("f", "path", "file", "fp", "filename", "fname", "dst", "path_or_buf", "save_directory", "stream")
_OF_OWNER = frozenset({"write_text", "write_bytes", "write"})


def written_place(file: File, call: ast.Call) -> ast.expr | None:
    """The path that a call writes to, or the file that is open for it; None for any other call."""
    last, known = last_name(call.func), file.names.qualified(call.func) or ""
    if last == "print":
        return keyword_of(call, "file")
    if isinstance(call.func, ast.Attribute) and last in _OF_OWNER and not known:
        return call.func.value
    if not writes_file(file, call):
        return None
    named = next((value for name in _PATH_NAMES if (value := keyword_of(call, name)) is not None), None)
    at = _PLACE.get(known, _PLACE.get(last, 0))
    return named if named is not None or at >= len(call.args) else call.args[at]


def removes(file: File, call: ast.Call) -> bool:
    """True for a call that removes or renames files; a text that is replaced is used, and a path need not be."""
    known, last = file.names.qualified(call.func), attribute_of(call.func)
    alone = isinstance(parent(call), ast.Expr) and len(arguments_of(call)) == len(call.args) == 1
    path = last in ("unlink", "rmdir") or (alone and last in ("rename", "replace"))
    return known in _REMOVES if known else path


def happens_once(file: File, call: ast.Call) -> bool:
    """True for a call that prints, logs or writes a file."""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(call.func, ast.Name) and call.func.id == "print":
        return True
    if (file.names.qualified(call.func) or "") in _FULL | _SHOWS or last in _LAST or removes(file, call):
        return True
    spelled = last_name(owner).lower()
    logs = last in _LOG and "log" in spelled
    return logs or (last == "write" and spelled in ("tqdm", "f_log", "logfile", "log_file"))


def only_writes(node: ast.stmt) -> bool:
    """True for a statement that does nothing but write, in loops and conditions too."""
    if isinstance(node, (ast.For, ast.If)):
        return all(only_writes(inner) for inner in [*node.body, *node.orelse])
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return last_name(node.value.func) in _WRITES


def holds_writer(program: Program, file: File, node: ast.expr) -> bool:
    """True for a variable that holds a writer of TensorBoard."""
    made = ((at, value) for at, value in assigned(program, file, node) if isinstance(value, ast.Call))
    return any(at.names.qualified(value.func) in WRITERS for at, value in made)
