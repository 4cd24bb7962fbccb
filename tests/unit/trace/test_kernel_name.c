// Names of kernels of PyTorch 2.7's libraries, and texts that are no such names.
#include "trace/kernel_name.h"
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[][2] = {
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_"
     "T1_",
     "at::native::vectorized_elementwise_kernel<FillFunctor>"},
    // another type of numbers
    {"_ZN2at6native27unrolled_elementwise_kernelINS0_11FillFunctorIN3c1011Float8_e5m2EEESt5arrayIPc"
     "Lm1EELi16E23TrivialOffsetCalculatorILi0EjES9_ILi1EjENS0_6memory15LoadWithoutCastENSC_"
     "16StoreWithoutCastEEEviT_T0_T2_T3_T4_T5_",
     "at::native::unrolled_elementwise_kernel<FillFunctor>"},
    // the innermost functor
    {"_ZN2at6native27unrolled_elementwise_kernelINS0_13AUnaryFunctorIN3c104HalfES4_S4_NS0_15binary_"
     "internal10MulFunctorIfEEEESt5arrayIPcLm2EELi4E23TrivialOffsetCalculatorILi1EjESD_NS0_"
     "6memory12LoadWithCastILi1EEENSE_13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_T5_",
     "at::native::unrolled_elementwise_kernel<MulFunctor>"},
    // the function around lambdas
    {"_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_"
     "13AUnaryFunctorI"
     "dddZZZNS0_17atan2_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE_clEvENKUlvE_clEvEUlddE_"
     "EEEEvS5_"
     "RKT_EUliE_EEviT1_",
     "at::native::elementwise_kernel<atan2_kernel_cuda>"},
    // of a scope without a name
    {"_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_69_GLOBAL__"
     "N_"
     "_fbb86987_30_ActivationHardsigmoidKernel_cu_d6a71674_2482618hardsigmoid_kernelERNS_"
     "18TensorIteratorBaseEENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvS5_RKT_EUliE_EEviT1_",
     "at::native::elementwise_kernel<hardsigmoid_kernel>"},
    // nvcc's lambdas for the GPU: the function's address is an argument
    {"_ZN2at6native18elementwise_kernelILi128ELi4E18__nv_hdl_wrapper_tILb0ELb0ELb0E11__nv_dl_"
     "tagIPFv"
     "RNS_18TensorIteratorBaseERKS2_ILb0ELb1ELb0ES3_IPFvS5_RKN3c106ScalarEEXadL_ZNS0_17logit_"
     "kernel_"
     "cudaES5_S9_EELj3EEFffEJEEEXadL_ZNS0_15gpu_kernel_implISE_EEvS5_RKT_"
     "EELj1EEFviEJ16OffsetCalculat"
     "orILi2EjLb0EESt5arrayIPcLm2EESF_SR_INS6_10ScalarTypeELm2EEEEEEviT1_",
     "at::native::elementwise_kernel<logit_kernel_cuda>"},
    {"_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIsNS0_14func_wrapper_tIsNS0_55_GLOBAL__N_"
     "_1"
     "f2edf9f_22_SparseCsrTensorMath_cu_868dd54514ReductionMulOpIsEEEEjsLi4ELi4EEEEEvT1_",
     "at::native::reduce_kernel<ReductionMulOp>"},
    {"_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_"
     "traitsILi96ELi128ELi64ELi4ELb0ELb0EN7cu"
     "tlass6half_tE19Flash_kernel_traitsILi96ELi128ELi64ELi4ES3_"
     "EELb1ELb0ELb0ELb0ELb1ELb1ELb0ELb0EEEv"
     "NS_16Flash_fwd_paramsE",
     "pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits>"},
    {"_ZN7cutlassL6KernelINS_4gemm6kernel29SparseGemmWithEpilogueVisitorINS1_"
     "11threadblock19SparseMma"
     "Multistage",
     "cutlass::Kernel<SparseGemmWithEpilogueVisitor>"},
    // without arguments that say anything
    {"_ZN2at6native12_GLOBAL__N_120softmax_warp_forwardIfffLi10ELb0ELb0EEEvPT0_PKT_iiiPKbib",
     "at::native::softmax_warp_forward"},
    {"_ZN2at6native5countILNS_4KindE3EEEvPT_", "at::native::count"},
    {"_Z5saxpyPfS_f", "saxpy"},
    {"_ZL5saxpyPfS_f", "saxpy"},
    {"_Z5saxpyIN4math4PlusEEvPfS1_f", "saxpy<Plus>"},
    // not mangled, or not by this rule
    {"triton_poi_fused_add_0", "triton_poi_fused_add_0"},
    {"loop_add_fusion", "loop_add_fusion"},
    {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"},
    {"", ""},
    {"_Z", "_Z"},
    {"_ZN", "_ZN"},
    {"_Z99999999999999999999a", "_Z99999999999999999999a"},
    {"_Z7short", "_Z7short"},
    {"_ZTI5saxpy", "_ZTI5saxpy"},
    // the end comes within the arguments
    {"_Z5saxpyI", "saxpy"},
    {"_Z5saxpyIL", "saxpy"},
    {"_Z5saxpyILN", "saxpy"},
    {"_Z5saxpyILNS", "saxpy"},
    {"_Z5saxpyIU", "saxpy"},
    {"_Z5saxpyIS", "saxpy"},
    {"_Z5saxpyIN4math", "saxpy<math>"},
    {"_Z5saxpyIN4math9", "saxpy<math>"},
};

static void names_are_short(void **state)
{
    (void)state;
    char out[KERNEL_NAME_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kernel_name_write(names[i][0], out);
        assert_string_equal(out, names[i][1]);
    }
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char name[2 * KERNEL_NAME_BYTES + 8], out[KERNEL_NAME_BYTES];
    memset(name, 'k', sizeof name);
    name[sizeof name - 1] = 0;
    kernel_name_write(name, out);
    assert_int_equal(strlen(out), KERNEL_NAME_BYTES - 1);
    memcpy(name, "_Z200", 5); // followed by as many characters
    memcpy(name + 205, "I4Plus", 6);
    kernel_name_write(name, out);
    assert_int_equal(strlen(out), KERNEL_NAME_BYTES - 1);
    assert_int_equal(strspn(out, "k"), KERNEL_NAME_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_short),
        cmocka_unit_test(long_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
