# Capsules by name: the pointer is the C function, the capsule's name its signature.
from typing import Final

__pyx_capi__: Final[dict[str, object]]
