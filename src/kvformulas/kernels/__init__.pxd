# The arithmetic of LLM serving, and nothing else: one .pxd a topic, every formula a pure function of doubles.
# Each is inlined into whoever cimports it, so this package has nothing to import at run time.
