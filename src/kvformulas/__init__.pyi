# What the lazy package offers: every formula by name, and every module.
from kvformulas import attention_layouts as attention_layouts
from kvformulas import capi as capi
from kvformulas import catalog as catalog
from kvformulas import cli as cli
from kvformulas import continuous_batching as continuous_batching
from kvformulas import engine_admission as engine_admission
from kvformulas import generation_loop as generation_loop
from kvformulas import kv_cache as kv_cache
from kvformulas import llm_sampling as llm_sampling
from kvformulas import paged_kv_cache as paged_kv_cache
from kvformulas import plan as plan
from kvformulas import replay as replay
from kvformulas import rope_scaling as rope_scaling
from kvformulas import runtime as runtime
from kvformulas import sampling_rules as sampling_rules
from kvformulas import speculation_analysis as speculation_analysis
from kvformulas import speculative_decoding as speculative_decoding
from kvformulas import ufuncs as ufuncs
from kvformulas.attention_layouts import *
from kvformulas.continuous_batching import *
from kvformulas.engine_admission import *
from kvformulas.generation_loop import *
from kvformulas.kv_cache import *
from kvformulas.llm_sampling import *
from kvformulas.paged_kv_cache import *
from kvformulas.rope_scaling import *
from kvformulas.sampling_rules import *
from kvformulas.speculation_analysis import *
from kvformulas.speculative_decoding import *

_FORMULAS: dict[str, tuple[str, ...]]
_TOPIC_OF: dict[str, str]

__version__: str
