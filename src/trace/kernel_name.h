// kernel_name.h - short names of GPU kernels.
//
// Compilers for C++ put a kernel's scope, template arguments and parameters into its name, often
// some hundred characters: the Itanium ABI's mangling. The short name has the scope, the function,
// and the first class or function among the template arguments that says what the kernel computes:
//
//     _ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEE…
//     at::native::vectorized_elementwise_kernel<FillFunctor>
//
// Instances for other types and sizes share this name. A name that is not mangled, as of Triton's
// or XLA's kernels, stays as it is.
#ifndef SONDE_TRACE_KERNEL_NAME_H
#define SONDE_TRACE_KERNEL_NAME_H

enum { KERNEL_NAME_BYTES = 160 }; // with the NUL; a longer name is cut

void kernel_name_write(const char *name, char out[KERNEL_NAME_BYTES]);

#endif
