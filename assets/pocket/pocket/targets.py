"""Pictures as patches, and the targets of patches: letters of slots, elements with their states.

Small screens are enlarged as the program does it (image_native_scale() of src/model). Boxes of stored
labels are in quarter pixels (sources/store.py).
"""

import numpy as np
import torch

from .files import MEAN, STD
from .heads import ACROSS, SLOTS, STATES
from .sources.store import KINDS

UNKNOWN = 2  # a slot without information; 1 has a letter, 0 has none
NOT_ASKED = -100  # a kind without a loss
ENLARGE, AS_LARGE_AS, LONGEST = 1.5, 640 * 480, 1024


def in_use(h, w):
    """Returns (scale, height, width) at which the program shows a picture to the model."""
    scale = ENLARGE if h * w * ENLARGE**2 <= AS_LARGE_AS and max(h, w) * ENLARGE <= LONGEST else 1.0
    return scale, round(h * scale), round(w * scale)


def scaled(labels, scale):
    """Returns letters or elements of a picture that is enlarged by `scale`."""
    out = labels.copy()
    out[:, :4] = np.round(out[:, :4] * scale)
    return out


def enlarged(picture, *labels):
    """Returns a picture uint8 [h, w, 3] and its labels as in use; an enlarged picture is padded to multiples
    of 32.
    """
    scale, *size = in_use(*picture.shape[:2])
    if scale == 1:
        return picture, *labels
    planes = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None]
    big = (
        torch.nn.functional.interpolate(planes, size, mode="bicubic", antialias=True)[0]
        .permute(1, 2, 0)
        .numpy()
    )
    return padded(big), *(scaled(part, scale) for part in labels)


def padded(picture):
    """Returns a picture whose last row and column are repeated up to multiples of 32 pixels."""
    h, w = picture.shape[:2]
    return np.pad(picture, ((0, -h % 32), (0, -w % 32), (0, 0)), mode="edge")


def patches_of(pictures):
    """Returns [B, patches, 768] normalized patches of pictures [B, h, w, 3] with values from 0 to 1."""
    B, h, w, _ = pictures.shape
    mean, std = (torch.tensor(t, device=pictures.device) for t in (MEAN, STD))
    x = ((pictures - mean) / std).view(B, h // 16, 16, w // 16, 16, 3)
    return x.permute(0, 1, 3, 5, 2, 4).reshape(B, h * w // 256, 768)


def whole(picture):
    """Returns (patches [1, n, 768], rows, columns) of a picture whose sides are cut to multiples of 32."""
    h, w = picture.shape[0] // 32 * 32, picture.shape[1] // 32 * 32
    x = torch.from_numpy(picture[:h, :w].copy())[None].float() / 255
    return patches_of(x), h // 16, w // 16


def slot_of(x, y):
    """Returns patch column, patch row and slot of points in pixels (arrays)."""
    return x // 16, y // 16, y % 16 // 8 * ACROSS + x % 16 // 4


def letter_targets(letters, rows, cols):
    """Returns (present [rows*cols, 8], [[patch, slot, class, offset in 16ths of a slot], ...])."""
    present = np.zeros((rows * cols, SLOTS), np.uint8)
    box = letters[:, :4] / 4
    cx, cy = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
    inside = (cx >= 0) & (cy >= 0) & (cx < cols * 16) & (cy < rows * 16)
    box, cx, cy, kind = box[inside], cx[inside], cy[inside], letters[inside, 4]
    w, h = np.maximum(box[:, 2] - box[:, 0], 1), np.maximum(box[:, 3] - box[:, 1], 1)
    out_x = np.maximum(-box[:, 0], box[:, 2] - cols * 16) / w
    out_y = np.maximum(-box[:, 1], box[:, 3] - rows * 16) / h
    whole = (out_x < 0.2) & (out_y < 0.25)  # the picture has most of the letter
    q, r, s = slot_of(cx.astype(int), cy.astype(int))
    patch = r * cols + q
    present[patch[~whole], s[~whole]] = UNKNOWN
    patch, s, kind, shift = patch[whole], s[whole], kind[whole], (cx[whole] % 4) * 4
    _, first = np.unique(patch * SLOTS + s, return_index=True)  # one letter per slot
    patch, s, kind, shift = patch[first], s[first], kind[first], shift[first]
    present[patch, s] = 1
    return present, np.stack([patch, s, kind, shift.astype(int)], 1)


def tidy(items):
    """Returns elements with the focus bit on fields only, where it shows, and without links within tabs."""
    shows = np.isin(items[:, 4], [KINDS.index("field"), KINDS.index("area")])
    out = items.copy()
    out[:, 5] = np.where(shows, items[:, 5], items[:, 5] & ~8)
    keep, slack, link = np.ones(len(items), bool), 8, items[:, 4] == KINDS.index("link")
    for t in items[items[:, 4] == KINDS.index("tab")]:
        within = (items[:, :2] >= t[:2] - slack).all(1) & (items[:, 2:4] <= t[2:4] + slack).all(1)
        keep &= ~(link & within)
    return out[keep]


def item_targets(items, rows, cols):
    """Returns (kind [n], 0 for none; state bits [n, STATES]) of the smallest element over each patch's
    centre.
    """
    kind, state = np.zeros(rows * cols, np.int64), np.zeros((rows * cols, STATES), np.float32)
    items = tidy(items)
    box = items[:, :4] / 4
    area = (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])
    cy, cx = np.divmod(np.arange(rows * cols), cols)
    centre = np.stack([cx * 16 + 8.0, cy * 16 + 8.0], 1)
    for k in np.argsort(-area):
        near = np.maximum(0, 9 - (box[k, 2:] - box[k, :2]) / 2)  # small elements extend to the nearest patch
        hit = ((centre > box[k, :2] - near) & (centre < box[k, 2:] + near)).all(1)
        kind[hit] = items[k, 4] + 1
        state[hit] = (items[k, 5] >> np.arange(STATES)) & 1
    return kind, state
