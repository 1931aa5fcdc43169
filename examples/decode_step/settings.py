# What a request may set; the defaults change nothing and keep every token.
from typing import NamedTuple


class Settings(NamedTuple):
    temperature: float = 1.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    top_k: int = 151_936
    min_p: float = 0.0
    top_p: float = 1.0
