# One folder a bench. They are not part of the default build: `ninja benches`, 
which tools/bench does.
bench_targets = []
subdir('collect')
subdir('detect')
subdir('emit')
subdir('store')
if bench_targets.length() > 0
  alias_target('benches', 
bench_targets)
else
  run_target('benches', 
command: ['true'])
endif
