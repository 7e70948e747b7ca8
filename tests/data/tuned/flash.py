"""Calls of the package flash_attn, of which the tests have a reference in plain PyTorch."""

from flash_attn import flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func
from flash_attn.flash_attn_interface import (
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)


def plain(q, k, v):
    return flash_attn_func(q, k, v)


def causal(q, k, v):
    return flash_attn_func(q, k, v, 0.0, softmax_scale=None, causal=True)


def asked(q, k, v, is_causal, scale):
    return flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=scale, causal=is_causal)


def window(q, k, v):
    return flash_attn_func(q, k, v, window_size=(2, 1), softmax_scale=0.5)


def causal_window(q, k, v):
    return flash_attn_func(q, k, v, causal=True, window_size=(3, -1))


def endless_window(q, k, v):
    return flash_attn_func(q, k, v, causal=True, window_size=(-1, -1)) + flash_attn_func(q, k, v, window_size=(-1, 1))


def turned(q, k, v):
    return flash_attn_func(
        q.transpose(1, 2).contiguous(), k.transpose(1, 2), v.transpose(1, 2), 0.0, None, True
    ).transpose(1, 2)


def packed(qkv):
    return flash_attn_qkvpacked_func(qkv, causal=True)


def half_packed(q, kv):
    return flash_attn_kvpacked_func(q, kv, causal=True)


def lengths(q, k, v, ends, key_ends):
    return flash_attn_varlen_func(
        q, k, v, cu_seqlens_q=ends, cu_seqlens_k=key_ends, max_seqlen_q=9, max_seqlen_k=9, causal=True
    )


def packed_lengths(qkv, ends):
    return flash_attn_varlen_qkvpacked_func(qkv, ends, 9, 0.0, causal=True)


def half_packed_lengths(q, kv, ends, key_ends):
    return flash_attn_varlen_kvpacked_func(q, kv, ends, key_ends, 9, 9)
