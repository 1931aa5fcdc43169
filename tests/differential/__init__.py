"""The planner against the caches that transformers really builds."""
