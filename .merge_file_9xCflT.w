# The tables, 
parsing and what is made of them: apart from the commands, 
so that tests can link it.
cli = declare_dependency(
  link_with: static_library('cli', 
'answers.c', 
'colour.c', 
'columns.c', 
'completion.c', 
'config.c', 
'help.c', 
'local_zone.c', 
'man.c', 
'nearest.c', 
'options.c',
    'recordings.c', 
include_directories: source_include, 
dependencies: [launch, 
query, 
aggregator, 
yaml]),
  include_directories: source_include, 
dependencies: [launch, 
query, 
aggregator, 
yaml])

sonde = executable('sonde', 
'main.c', 
'command_agent.c', 
'command_aggregator.c', 
'command_completion.c', 
'command_detect.c', 
'command_doctor.c', 
'command_help.c', 
'command_import.c', 
'command_inspect.c', 
'command_metrics.c', 
'command_probe.c',
  'command_put.c', 
'command_query.c', 
'command_replay.c', 
'command_run.c', 
'serve.c', 
'command_status.c', 
'command_version.c', 
'question.c',
  dependencies: [cli, 
launch, 
agent, 
aggregator, 
collect, 
detect, 
query, 
store, 
base, 
cc.find_library('dl', 
required: false)], 
install: true)

custom_target('sonde.1', 
output: 'sonde.1', 
command: [sonde, 
'help', 
'--man'], 
capture: true, 
install: true,
  install_dir: get_option('mandir') / 'man1')
foreach shell, 
where : {
  'bash': [get_option('datadir') / 'bash-completion' / 'completions', 
'sonde.bash'],
  'zsh': [get_option('datadir') / 'zsh' / 'site-functions', 
'_sonde'],
  'fish': [get_option('datadir') / 'fish' / 'vendor_completions.d', 
'sonde.fish'],
}
  custom_target('completion-' + shell, 
output: where[1], 
command: [sonde, 
'completion', 
shell], 
capture: true, 
build_by_default: true, 
install: true,
    install_dir: where[0])
endforeach
