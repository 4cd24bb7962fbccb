# The codecs. Their inner loops are compiled once for each instruction set; the best that the machine has is taken at run time.
# No contraction: sums have the same bits on every machine.
codec_args = ['-O3', 
'-ffp-contract=off']
if get_option('fuzz')
  codec_args += '-fsanitize=fuzzer-no-link' # coverage, 
for the fuzzer to find its way
endif
codec_x86 = {'avx2': ['-mavx2', 
'-mfma', 
'-mbmi2'], 
'avx512': ['-mavx512f', 
'-mavx512dq', 
'-mavx512bw', 
'-mavx512vl', 
'-mfma', 
'-mbmi2', 
'-mprefer-vector-width=512']}
codec_loops = [static_library('codec_plain', 
'codec_kernels.c', 
include_directories: source_include,
  c_args: codec_args + ['-DKERNELS=codec_kernels_plain', 
'-DKERNELS_NAME="plain C"'], 
pic: true)]
if host_machine.cpu_family() == 'x86_64'
  codec_args += '-DSONDE_X86_KERNELS=1'
  foreach set, 
flags : codec_x86
    codec_loops += static_library('codec_' + set, 
'codec_kernels.c', 
include_directories: source_include,
      c_args: codec_args + flags + ['-DKERNELS=codec_kernels_' + set, 
'-DKERNELS_NAME="' + set + '"'], 
pic: true)
  endforeach
endif
codec = declare_dependency(
  link_with: static_library('codec', 
'codec.c', 
'codec_bits.c', 
'codec_decimal.c', 
'codec_integer.c', 
'codec_runs.c', 
'codec_table.c', 
'codec_table_encode.c', 
'codec_table_series.c', 
'codec_table_zstd.c', 
'codec_times.c',
    include_directories: source_include, 
c_args: codec_args, 
dependencies: [base, 
zstd], 
link_with: codec_loops, 
pic: true),
  include_directories: source_include, 
dependencies: [base, 
zstd])

zlib = dependency('zlib')
store = declare_dependency(
  link_with: static_library('store', 
'append.c', 
'before.c', 
'block.c', 
'buffers.c', 
'cache.c', 
'catalog.c', 
'cold.c', 
'column.c', 
'cursor.c', 
'define.c', 
'event_record.c',
    'events.c', 
'extents.c', 
'import.c', 
'index.c', 
'inspect.c', 
'io.c', 
'lock.c', 
'merge.c', 
'pieces.c', 
'reader.c', 
'recover.c', 
'retain.c', 
'rewrite.c', 
'seal.c',
    'snapshot.c', 
'sort.c', 
'spill.c', 
'store.c', 
'tail.c', 
'thaw.c', 
'view.c',
    include_directories: source_include, 
dependencies: [codec, 
base, 
zstd, 
zlib], 
pic: true, 
c_args: '-O3'),
  include_directories: source_include, 
dependencies: [codec, 
base, 
threads, 
zstd, 
zlib])
