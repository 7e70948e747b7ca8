"""What functions of torch and methods of tensors make of types: which keep them, which make them, which mix them."""

from __future__ import annotations

from transplt.rules.torch_callables import TENSOR, names_of

#: Functions of torch that make a tensor, of the default type where none is given and they make floats.
MAKES_FLOATS = frozenset(
    "zeros ones empty full rand randn linspace logspace eye hann_window hamming_window blackman_window bartlett_window "
    "kaiser_window fft.fftfreq fft.rfftfreq zeros_like ones_like full_like empty_like rand_like randn_like".split()
)
MAKES_INDICES = frozenset("randint randperm tril_indices triu_indices".split())
#: Like another tensor, where no type or no device is given.
LIKE = frozenset("zeros_like ones_like full_like empty_like rand_like randn_like".split())
NEW = frozenset("new_zeros new_ones new_empty new_full new_tensor".split())
COMPLEX_FFT = frozenset(
    f"fft.{name}" for name in "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn ihfft ihfft2 ihfftn".split()
)
REAL_FFT = frozenset(f"fft.{name}" for name in "irfft irfft2 irfftn hfft hfft2 hfftn".split())
#: Give the parts of complex numbers, or their size.
REAL_PARTS = frozenset("view_as_real abs absolute angle real imag".split())
#: Take several tensors and give one of their common type.
MIXES = frozenset(
    "outer ger matmul mm bmm mv dot mul multiply add sub subtract div divide true_divide cross kron maximum minimum "
    "pow hypot atan2 bilinear baddbmm addmm".split()
)
#: Give a tensor of the type of what they are called on, whatever that is.
MOVES = names_of(TENSOR, "to_card", "to_host")
_OTHERWISE = MOVES | {"data", "unbind", "chunk", "split"}
KEEPS = names_of(TENSOR, "keeps_type", "views") - _OTHERWISE | frozenset(
    "movedim moveaxis swapaxes swapdims unflatten unfold view_as tile repeat_interleave flip fliplr flipud roll rot90 "
    "diag diagonal tril triu conj resolve_conj resolve_neg broadcast_to gather index_select masked_fill masked_fill_ "
    "masked_select clone detach_ unsqueeze_ squeeze_ neg negative take_along_dim scatter scatter_add index_add "
    "as_strided ravel ifftshift positive nan_to_num clamp clamp_ clip copy_ zero_ fill_ mul_ add_ sub_ div_ "
    "index_copy_ index_add_ scatter_ scatter_add_ requires_grad_ share_memory_ cumsum cumprod sum prod amax amin "
    "to_dense coalesce nansum".split()
)
#: The same of functions of torch, which may take what they are called on as `input`.
KEEPS_FUNCTIONS = KEEPS | {"fft.fftshift", "fft.ifftshift"}
#: Keep floats and complex numbers; give floats for whole numbers.
KEEPS_WIDE = frozenset(
    "mean exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan reciprocal square "
    "sigmoid relu softmax log_softmax std var median logsumexp sinc erf floor ceil round trunc frac sign sgn "
    "pinverse inverse matrix_exp normalize dropout gelu silu".split()
)
#: Give whole numbers or truth values, of as many dimensions as they are given.
GIVES_INDICES = frozenset("argsort nonzero argwhere".split())
GIVES_TRUTH = frozenset(
    "isnan isinf isfinite eq ne lt le gt ge greater less not_equal greater_equal less_equal logical_not logical_and "
    "logical_or logical_xor isin isclose".split()
)
#: Casts by their name.
CASTS = frozenset(
    "float double half bfloat16 cfloat cdouble chalf long int short bool".split()
)  # byte and char have no name of a type that is theirs
#: The last parts of all names that give tensors of a type which can be told.
HAND_ON = frozenset(
    name.rpartition(".")[2]
    for names in (
        MAKES_FLOATS, MAKES_INDICES, LIKE, NEW, COMPLEX_FFT, REAL_FFT, REAL_PARTS, MIXES, KEEPS_FUNCTIONS,
        KEEPS_WIDE, CASTS - {"float", "half", "bfloat16", "long", "int", "short", "bool"},
        MOVES, names_of(TENSOR, "casts"),
        "arange tensor as_tensor polar complex view_as_complex stft istft Parameter cat "
        "concat stack einsum where topk sort kthvalue mode cummax cummin max min median chunk split unbind "
        "tensor_split broadcast_tensors device dtype".split(),
    )
    for name in names
)
