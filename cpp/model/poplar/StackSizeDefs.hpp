#pragma once

// Stack sizes that codelets declare. The model ignores them: vertices run on the host's stack,
// which is large enough, and profiles count the same stacks for all (docs/guides/memory.md).
#define DEF_STACK_USAGE(bytes, function)
#define DEF_STACK_SIZE_OWN(bytes, function)
#define DEF_FUNC_CALL_PTRS(function, callees)
#define DEF_FUNCTION_PTRS(function, callees)
#define RECURSIVE_FUNCTION_SIZE(bytes)
