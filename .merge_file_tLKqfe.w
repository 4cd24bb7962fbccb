// catalogue.def - every built-in metric, 
one row each; said here and nowhere else.
//
// METRIC(symbol, 
name, 
kind, 
unit, 
level, 
source, 
aliases, 
help), 
included with METRIC defined as what is wanted of a row.
// The rows of one source stand together. Names are snake_case with their unit; counters end in _total and stay counters.
// Aliases are other names that queries may use, 
separated by blanks.

// load.c: /proc/loadavg
METRIC(LOAD_1M, 
"load_1m", 
GAUGE, 
"", 
2, 
"load", 
"load_average", 
"Tasks that run or wait for a disk, 
averaged over 1 minute.")
METRIC(LOAD_5M, 
"load_5m", 
GAUGE, 
"", 
2, 
"load", 
"", 
"Tasks that run or wait for a disk, 
averaged over 5 minutes.")
METRIC(LOAD_15M, 
"load_15m", 
GAUGE, 
"", 
2, 
"load", 
"", 
"Tasks that run or wait for a disk, 
averaged over 15 minutes.")
METRIC(LOAD_TASKS_RUNNABLE, 
"tasks_runnable", 
GAUGE, 
"", 
2, 
"load", 
"", 
"Threads that run or could run now.")
METRIC(LOAD_TASKS, 
"tasks", 
GAUGE, 
"", 
2, 
"load", 
"", 
"Threads of all users on the node.")

// cpu.c: /proc/stat
METRIC(CPU_PERCENT, 
"cpu_percent", 
GAUGE, 
"percent", 
2, 
"cpu", 
"cpu_utilization", 
"Share of all processors that was busy since the last sample.")
METRIC(CPU_CORE_MAX, 
"cpu_core_max_percent", 
GAUGE, 
"percent", 
2, 
"cpu", 
"", 
"Busy share of the busiest processor since the last sample.")
METRIC(CPU_CORE_DEVIATION, 
"cpu_core_deviation_percent", 
GAUGE, 
"percent", 
2, 
"cpu", 
"", 
"Standard deviation of the busy shares of the processors; 0 when the load is even.")
METRIC(CPU_COUNT, 
"cpu_count", 
GAUGE, 
"", 
2, 
"cpu", 
"", 
"Processors that are online.")
METRIC(CPU_USER, 
"cpu_user_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in programs, 
over all processors.")
METRIC(CPU_NICE, 
"cpu_nice_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in programs of low priority.")
METRIC(CPU_SYSTEM, 
"cpu_system_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in the kernel.")
METRIC(CPU_IDLE, 
"cpu_idle_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time with nothing to do.")
METRIC(CPU_IOWAIT, 
"cpu_iowait_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Idle processor time while a task waited for a disk.")
METRIC(CPU_IRQ, 
"cpu_irq_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in interrupts.")
METRIC(CPU_SOFTIRQ, 
"cpu_softirq_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in deferred interrupt work.")
METRIC(CPU_STEAL, 
"cpu_steal_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time that other virtual machines took.")
METRIC(CPU_GUEST, 
"cpu_guest_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in virtual machines run here; also part of user.")
METRIC(CPU_GUEST_NICE, 
"cpu_guest_nice_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cpu", 
"", 
"Processor time in virtual machines of low priority; also part of nice.")
METRIC(CPU_CONTEXT_SWITCHES, 
"context_switches_total", 
COUNTER, 
"", 
2, 
"cpu", 
"", 
"Times that a processor went from one task to another.")
METRIC(CPU_INTERRUPTS, 
"interrupts_total", 
COUNTER, 
"", 
2, 
"cpu", 
"", 
"Interrupts served.")
METRIC(CPU_FORKS, 
"forks_total", 
COUNTER, 
"", 
2, 
"cpu", 
"", 
"Processes and threads started.")
METRIC(CPU_RUNNING, 
"tasks_running", 
GAUGE, 
"", 
2, 
"cpu", 
"", 
"Tasks that run or wait for a processor.")
METRIC(CPU_BLOCKED, 
"tasks_blocked", 
GAUGE, 
"", 
2, 
"cpu", 
"", 
"Tasks that wait for a disk.")
METRIC(CPU_CORE_PERCENT, 
"cpu_core_percent", 
GAUGE, 
"percent", 
4, 
"cpu", 
"", 
"Busy share of one processor since the last sample. Tag cpu.")

// memory.c: /proc/meminfo
METRIC(MEMORY_TOTAL, 
"memory_total_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that the node has.")
METRIC(MEMORY_AVAILABLE, 
"memory_available_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that programs can still get without swapping.")
METRIC(MEMORY_USED, 
"memory_used_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that is not available: total less available.")
METRIC(MEMORY_USED_PERCENT, 
"memory_used_percent", 
GAUGE, 
"percent", 
2, 
"memory", 
"used_RAM", 
"Share of the memory that is not available.")
METRIC(MEMORY_FREE, 
"memory_free_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that holds nothing.")
METRIC(MEMORY_CACHED, 
"memory_cached_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"File contents kept in memory.")
METRIC(MEMORY_BUFFERS, 
"memory_buffers_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Blocks of devices kept in memory.")
METRIC(MEMORY_DIRTY, 
"memory_dirty_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"File contents that wait to be written.")
METRIC(MEMORY_SHARED, 
"memory_shared_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Shared memory and files in tmpfs.")
METRIC(MEMORY_SLAB, 
"memory_slab_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory of the kernel's own tables.")
METRIC(SWAP_TOTAL, 
"swap_total_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Swap space that the node has.")
METRIC(SWAP_FREE, 
"swap_free_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Swap space that is free.")
METRIC(SWAP_USED, 
"swap_used_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Swap space in use.")
METRIC(MEMORY_SLAB_RECLAIMABLE, 
"memory_slab_reclaimable_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Part of the kernel's tables that can be given back.")
METRIC(MEMORY_SLAB_UNRECLAIMABLE, 
"memory_slab_unreclaimable_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Part of the kernel's tables that cannot be given back.")
METRIC(MEMORY_KERNEL_STACKS, 
"memory_kernel_stacks_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Stacks that the kernel keeps for all threads.")
METRIC(MEMORY_PAGE_TABLES, 
"memory_page_tables_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Tables that say where pages of memory are.")
METRIC(MEMORY_ANONYMOUS, 
"memory_anonymous_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory of programs that no file stands behind.")
METRIC(MEMORY_MAPPED, 
"memory_mapped_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Files that are mapped into programs.")
METRIC(MEMORY_ACTIVE, 
"memory_active_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory used lately.")
METRIC(MEMORY_INACTIVE, 
"memory_inactive_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory not used for a while, 
the first to be given back.")
METRIC(MEMORY_LOCKED, 
"memory_locked_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that programs have locked.")
METRIC(MEMORY_WRITEBACK, 
"memory_writeback_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"File contents that are being written.")
METRIC(MEMORY_COMMITTED, 
"memory_committed_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory promised to programs.")
METRIC(MEMORY_TRANSPARENT_HUGE, 
"memory_transparent_huge_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory in huge pages that the kernel made by itself.")
METRIC(MEMORY_HUGE, 
"memory_huge_pages_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory set aside for huge pages.")
METRIC(MEMORY_HUGE_FREE, 
"memory_huge_pages_free_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory set aside for huge pages and not used.")
METRIC(MEMORY_HUGE_PAGE_SIZE, 
"memory_huge_page_size_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Size of a huge page.")
METRIC(MEMORY_UNEVICTABLE, 
"memory_unevictable_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that cannot be given back.")
METRIC(SWAP_CACHED, 
"swap_cached_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that is in swap space too.")
METRIC(MEMORY_PER_CPU, 
"memory_per_cpu_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that the kernel keeps for each processor.")
METRIC(MEMORY_VMALLOC, 
"memory_vmalloc_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that the kernel has mapped for itself.")
METRIC(MEMORY_COMMIT_LIMIT, 
"memory_commit_limit_bytes", 
GAUGE, 
"bytes", 
2, 
"memory", 
"", 
"Memory that can be promised to programs where promises are kept.")

// vmstat.c: /proc/vmstat
METRIC(PAGE_FAULTS, 
"page_faults_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Times that a program touched memory that was not mapped yet.")
METRIC(PAGE_FAULTS_MAJOR, 
"page_faults_major_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Page faults that had to wait for a disk.")
METRIC(PAGED_IN, 
"paged_in_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Bytes read from disks into memory.")
METRIC(PAGED_OUT, 
"paged_out_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Bytes written from memory to disks.")
METRIC(SWAPPED_IN, 
"swapped_in_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory brought back from swap space.")
METRIC(SWAPPED_OUT, 
"swapped_out_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory put into swap space.")
METRIC(RECLAIMED_BACKGROUND, 
"memory_reclaimed_background_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory taken back by the kernel in the background.")
METRIC(RECLAIMED_DIRECT, 
"memory_reclaimed_direct_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory taken back while a program waited for it.")
METRIC(COMPACTION_STALLS, 
"memory_compaction_stalls_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Times that a program waited for memory to be put together.")
METRIC(HUGE_FAULTS, 
"huge_page_faults_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Page faults that were given a huge page.")
METRIC(HUGE_FALLBACKS, 
"huge_page_fallbacks_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Page faults that were to have a huge page and got small ones.")
METRIC(NUMA_HITS, 
"numa_hits_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages taken from the NUMA node that they were wanted from.")
METRIC(NUMA_MISSES, 
"numa_misses_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages taken from a NUMA node although another was wanted.")
METRIC(NUMA_FOREIGN, 
"numa_foreign_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages wanted from a NUMA node and taken from another.")
METRIC(NUMA_LOCAL, 
"numa_local_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages taken from the NUMA node that the program ran on.")
METRIC(NUMA_OTHER, 
"numa_other_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages taken from a NUMA node that the program did not run on.")
METRIC(NUMA_MIGRATED, 
"numa_migrated_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory moved between NUMA nodes.")
METRIC(OOM_KILLS, 
"oom_kills_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Processes killed because memory ran out.")
METRIC(SCANNED_BACKGROUND, 
"memory_scanned_background_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory looked at by the kernel, 
in the background, 
for what can be taken back.")
METRIC(SCANNED_DIRECT, 
"memory_scanned_direct_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory looked at while a program waited for it.")
METRIC(REFAULTS_FILE, 
"memory_refaults_file_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages of files that were needed again soon after they were taken back.")
METRIC(REFAULTS_ANONYMOUS, 
"memory_refaults_anonymous_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Pages of programs that were needed again soon after they were taken back.")
METRIC(PAGES_FREED, 
"memory_freed_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory given back to the kernel.")
METRIC(PAGES_MOVED, 
"memory_moved_bytes_total", 
COUNTER, 
"bytes", 
2, 
"vmstat", 
"", 
"Memory moved to another place, 
for any reason.")
METRIC(HUGE_SPLITS, 
"huge_page_splits_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Huge pages split into small ones.")
METRIC(HUGE_COLLAPSES, 
"huge_page_collapses_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Huge pages made of small ones.")
METRIC(NUMA_HINT_FAULTS, 
"numa_hint_faults_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Page faults that the kernel caused to learn which NUMA node uses a page.")
METRIC(NUMA_HINT_FAULTS_LOCAL, 
"numa_hint_faults_local_total", 
COUNTER, 
"", 
2, 
"vmstat", 
"", 
"Of these, 
the ones from the NUMA node where the page was.")

// pressure.c: /proc/pressure
METRIC(PRESSURE_CPU_SOME, 
"pressure_cpu_some_percent", 
GAUGE, 
"percent", 
2, 
"pressure", 
"", 
"Share of the last 10 seconds in which at least one task waited for a processor.")
METRIC(PRESSURE_CPU_SOME_SECONDS, 
"pressure_cpu_some_seconds_total", 
COUNTER, 
"seconds", 
2, 
"pressure", 
"", 
"Time in which at least one task waited for a processor.")
METRIC(PRESSURE_CPU_FULL, 
"pressure_cpu_full_percent", 
GAUGE, 
"percent", 
2, 
"pressure", 
"", 
"Share of the last 10 seconds in which all tasks that could work waited for a processor.")
METRIC(PRESSURE_CPU_FULL_SECONDS, 
"pressure_cpu_full_seconds_total", 
COUNTER, 
"seconds", 
2, 
"pressure", 
"", 
"Time in which all tasks that could work waited for a processor.")
METRIC(PRESSURE_MEMORY_SOME, 
"pressure_memory_some_percent", 
GAUGE, 
"percent", 
2, 
"pressure", 
"", 
"Share of the last 10 seconds in which at least one task waited for memory.")
METRIC(PRESSURE_MEMORY_SOME_SECONDS, 
"pressure_memory_some_seconds_total", 
COUNTER, 
"seconds", 
2, 
"pressure", 
"", 
"Time in which at least one task waited for memory.")
METRIC(PRESSURE_MEMORY_FULL, 
"pressure_memory_full_percent", 
GAUGE, 
"percent", 
2, 
"pressure", 
"", 
"Share of the last 10 seconds in which all tasks that could work waited for memory.")
METRIC(PRESSURE_MEMORY_FULL_SECONDS, 
"pressure_memory_full_seconds_total", 
COUNTER, 
"seconds", 
2, 
"pressure", 
"", 
"Time in which all tasks that could work waited for memory.")
METRIC(PRESSURE_IO_SOME, 
"pressure_io_some_percent", 
GAUGE, 
"percent", 
2, 
"pressure", 
"", 
"Share of the last 10 seconds in which at least one task waited for a disk.")
METRIC(PRESSURE_IO_SOME_SECONDS, 
"pressure_io_some_seconds_total", 
COUNTER, 
"seconds", 
2, 
"pressure", 
"", 
"Time in which at least one task waited for a disk.")
METRIC(PRESSURE_IO_FULL, 
"pressure_io_full_percent", 
GAUGE, 
"percent", 
2, 
"pressure", 
"", 
"Share of the last 10 seconds in which all tasks that could work waited for a disk.")
METRIC(PRESSURE_IO_FULL_SECONDS, 
"pressure_io_full_seconds_total", 
COUNTER, 
"seconds", 
2, 
"pressure", 
"", 
"Time in which all tasks that could work waited for a disk.")

// network.c: /proc/net/dev
METRIC(NETWORK_INTERFACES, 
"network_interfaces", 
GAUGE, 
"", 
2, 
"network", 
"", 
"Network interfaces that have counted anything.")
METRIC(NETWORK_RECEIVE_BYTES, 
"network_receive_bytes_total", 
COUNTER, 
"bytes", 
2, 
"network", 
"", 
"Bytes received. Tag interface.")
METRIC(NETWORK_RECEIVE_PACKETS, 
"network_receive_packets_total", 
COUNTER, 
"", 
2, 
"network", 
"", 
"Packets received. Tag interface.")
METRIC(NETWORK_RECEIVE_ERRORS, 
"network_receive_errors_total", 
COUNTER, 
"", 
2, 
"network", 
"", 
"Packets not received because of errors. Tag interface.")
METRIC(NETWORK_RECEIVE_DROPS, 
"network_receive_drops_total", 
COUNTER, 
"", 
2, 
"network", 
"", 
"Packets dropped that were to be received. Tag interface.")
METRIC(NETWORK_TRANSMIT_BYTES, 
"network_transmit_bytes_total", 
COUNTER, 
"bytes", 
2, 
"network", 
"", 
"Bytes sent. Tag interface.")
METRIC(NETWORK_TRANSMIT_PACKETS, 
"network_transmit_packets_total", 
COUNTER, 
"", 
2, 
"network", 
"", 
"Packets sent. Tag interface.")
METRIC(NETWORK_TRANSMIT_ERRORS, 
"network_transmit_errors_total", 
COUNTER, 
"", 
2, 
"network", 
"", 
"Packets not sent because of errors. Tag interface.")
METRIC(NETWORK_TRANSMIT_DROPS, 
"network_transmit_drops_total", 
COUNTER, 
"", 
2, 
"network", 
"", 
"Packets dropped that were to be sent. Tag interface.")

// disk.c: /proc/diskstats
METRIC(DISKS, 
"disks", 
GAUGE, 
"", 
2, 
"disk", 
"", 
"Disks that have done anything.")
METRIC(DISK_READ_BYTES, 
"disk_read_bytes_total", 
COUNTER, 
"bytes", 
2, 
"disk", 
"", 
"Bytes read from a disk. Tag device.")
METRIC(DISK_WRITTEN_BYTES, 
"disk_written_bytes_total", 
COUNTER, 
"bytes", 
2, 
"disk", 
"", 
"Bytes written to a disk. Tag device.")
METRIC(DISK_READS, 
"disk_reads_total", 
COUNTER, 
"", 
2, 
"disk", 
"", 
"Reads that a disk has done. Tag device.")
METRIC(DISK_WRITES, 
"disk_writes_total", 
COUNTER, 
"", 
2, 
"disk", 
"", 
"Writes that a disk has done. Tag device.")
METRIC(DISK_READ_SECONDS, 
"disk_read_seconds_total", 
COUNTER, 
"seconds", 
2, 
"disk", 
"", 
"Time that reads took, 
added up. Tag device.")
METRIC(DISK_WRITE_SECONDS, 
"disk_write_seconds_total", 
COUNTER, 
"seconds", 
2, 
"disk", 
"", 
"Time that writes took, 
added up. Tag device.")
METRIC(DISK_BUSY_SECONDS, 
"disk_busy_seconds_total", 
COUNTER, 
"seconds", 
2, 
"disk", 
"", 
"Time in which a disk had something to do. Tag device.")
METRIC(DISK_IN_FLIGHT, 
"disk_in_flight", 
GAUGE, 
"", 
2, 
"disk", 
"", 
"Reads and writes that a disk works on now. Tag device.")

// filesystem.c: statvfs
METRIC(FILESYSTEMS, 
"filesystems", 
GAUGE, 
"", 
2, 
"filesystem", 
"", 
"Folders whose file systems answered.")
METRIC(FILESYSTEM_SIZE, 
"filesystem_size_bytes", 
GAUGE, 
"bytes", 
2, 
"filesystem", 
"", 
"Size of the file system of a folder. Tag folder.")
METRIC(FILESYSTEM_FREE, 
"filesystem_free_bytes", 
GAUGE, 
"bytes", 
2, 
"filesystem", 
"", 
"What users can still write to the file system of a folder. Tag folder.")
METRIC(FILESYSTEM_USED_PERCENT, 
"filesystem_used_percent", 
GAUGE, 
"percent", 
2, 
"filesystem", 
"", 
"Share in use of what users can have. Tag folder.")
METRIC(FILESYSTEM_INODES, 
"filesystem_inodes", 
GAUGE, 
"", 
2, 
"filesystem", 
"", 
"Files that the file system can hold. Tag folder.")
METRIC(FILESYSTEM_INODES_FREE, 
"filesystem_inodes_free", 
GAUGE, 
"", 
2, 
"filesystem", 
"", 
"Files that can still be made. Tag folder.")

// infiniband.c: /sys/class/infiniband
METRIC(INFINIBAND_RECEIVE_BYTES, 
"infiniband_receive_bytes_total", 
COUNTER, 
"bytes", 
2, 
"infiniband", 
"", 
"Bytes received by a port. Tags device, 
port.")
METRIC(INFINIBAND_TRANSMIT_BYTES, 
"infiniband_transmit_bytes_total", 
COUNTER, 
"bytes", 
2, 
"infiniband", 
"", 
"Bytes sent by a port. Tags device, 
port.")
METRIC(INFINIBAND_RECEIVE_PACKETS, 
"infiniband_receive_packets_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Packets received by a port. Tags device, 
port.")
METRIC(INFINIBAND_TRANSMIT_PACKETS, 
"infiniband_transmit_packets_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Packets sent by a port. Tags device, 
port.")
METRIC(INFINIBAND_RECEIVE_ERRORS, 
"infiniband_receive_errors_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Packets received with errors. Tags device, 
port.")
METRIC(INFINIBAND_TRANSMIT_DISCARDS, 
"infiniband_transmit_discards_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Packets not sent because the port was down or congested. Tags device, 
port.")
METRIC(INFINIBAND_TRANSMIT_WAITS, 
"infiniband_transmit_waits_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Ticks in which a port had data to send and could not. Tags device, 
port.")
METRIC(INFINIBAND_SYMBOL_ERRORS, 
"infiniband_symbol_errors_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Errors on the link of a port. Tags device, 
port.")
METRIC(INFINIBAND_LINK_DOWNED, 
"infiniband_link_downed_total", 
COUNTER, 
"", 
2, 
"infiniband", 
"", 
"Times that the link of a port went down. Tags device, 
port.")

// slingshot.c: /sys/class/cxi
METRIC(SLINGSHOT_RECEIVE_BYTES, 
"slingshot_receive_bytes_total", 
COUNTER, 
"bytes", 
2, 
"slingshot", 
"", 
"Bytes received by a card. Tag device.")
METRIC(SLINGSHOT_TRANSMIT_BYTES, 
"slingshot_transmit_bytes_total", 
COUNTER, 
"bytes", 
2, 
"slingshot", 
"", 
"Bytes sent by a card. Tag device.")
METRIC(SLINGSHOT_CORRECTED, 
"slingshot_corrected_total", 
COUNTER, 
"", 
2, 
"slingshot", 
"", 
"Code words received with errors that were corrected. Tag device.")
METRIC(SLINGSHOT_UNCORRECTED, 
"slingshot_uncorrected_total", 
COUNTER, 
"", 
2, 
"slingshot", 
"", 
"Code words received with errors that could not be corrected. Tag device.")

// lustre.c: llite/*/stats
METRIC(LUSTRE_READ_BYTES, 
"lustre_read_bytes_total", 
COUNTER, 
"bytes", 
2, 
"lustre", 
"", 
"Bytes that programs have read from a Lustre file system. Tag filesystem.")
METRIC(LUSTRE_WRITTEN_BYTES, 
"lustre_written_bytes_total", 
COUNTER, 
"bytes", 
2, 
"lustre", 
"", 
"Bytes that programs have written to a Lustre file system. Tag filesystem.")
METRIC(LUSTRE_READS, 
"lustre_reads_total", 
COUNTER, 
"", 
2, 
"lustre", 
"", 
"Reads. Tag filesystem.")
METRIC(LUSTRE_WRITES, 
"lustre_writes_total", 
COUNTER, 
"", 
2, 
"lustre", 
"", 
"Writes. Tag filesystem.")
METRIC(LUSTRE_OPENS, 
"lustre_opens_total", 
COUNTER, 
"", 
2, 
"lustre", 
"", 
"Files opened. Tag filesystem.")
METRIC(LUSTRE_CLOSES, 
"lustre_closes_total", 
COUNTER, 
"", 
2, 
"lustre", 
"", 
"Files closed. Tag filesystem.")
METRIC(LUSTRE_GETATTRS, 
"lustre_getattrs_total", 
COUNTER, 
"", 
2, 
"lustre", 
"", 
"Times that programs asked about a file. Tag filesystem.")
METRIC(LUSTRE_UNLINKS, 
"lustre_unlinks_total", 
COUNTER, 
"", 
2, 
"lustre", 
"", 
"Files removed. Tag filesystem.")

// nfs.c: /proc/net/rpc/nfs, 
mountstats
METRIC(NFS_CALLS, 
"nfs_calls_total", 
COUNTER, 
"", 
2, 
"nfs", 
"", 
"Calls to NFS servers.")
METRIC(NFS_RETRANSMISSIONS, 
"nfs_retransmissions_total", 
COUNTER, 
"", 
2, 
"nfs", 
"", 
"Calls to NFS servers that were sent again because no answer came.")
METRIC(NFS_READ_BYTES, 
"nfs_read_bytes_total", 
COUNTER, 
"bytes", 
2, 
"nfs", 
"", 
"Bytes that came from the server of a mount. Tag folder.")
METRIC(NFS_WRITTEN_BYTES, 
"nfs_written_bytes_total", 
COUNTER, 
"bytes", 
2, 
"nfs", 
"", 
"Bytes that went to the server of a mount. Tag folder.")

// interrupts.c: /proc/interrupts
METRIC(INTERRUPT_LINES, 
"interrupt_lines", 
GAUGE, 
"", 
4, 
"interrupts", 
"", 
"Interrupts that the kernel counts.")
METRIC(INTERRUPT_COUNT, 
"interrupt_count_total", 
COUNTER, 
"", 
4, 
"interrupts", 
"", 
"Times that an interrupt came, 
over all processors. Tag interrupt: its number or short name.")

// energy.c: RAPL, 
pm_counters
METRIC(ENERGY, 
"energy_joules_total", 
COUNTER, 
"joules", 
2, 
"energy", 
"", 
"Energy used by the node or a part of it. Tag zone.")
METRIC(POWER, 
"power_watts", 
GAUGE, 
"watts", 
2, 
"energy", 
"", 
"Power that the node or a part of it draws now; of zones that only count energy take the rate of that. Tag zone.")

// hwmon.c: /sys/class/hwmon
METRIC(TEMPERATURE, 
"temperature_celsius", 
GAUGE, 
"celsius", 
2, 
"temperature", 
"", 
"Temperature at a sensor. Tags chip, 
sensor.")
METRIC(FAN, 
"fan_rpm", 
GAUGE, 
"rpm", 
2, 
"fan", 
"", 
"Turns a minute of a fan. Tags chip, 
sensor.")

// frequency.c: cpufreq
METRIC(CPU_FREQUENCY_MEAN, 
"cpu_frequency_mean_hertz", 
GAUGE, 
"hertz", 
2, 
"frequency", 
"", 
"Mean of the processors' clock rates.")
METRIC(CPU_FREQUENCY_MIN, 
"cpu_frequency_min_hertz", 
GAUGE, 
"hertz", 
2, 
"frequency", 
"", 
"Clock rate of the slowest processor.")
METRIC(CPU_FREQUENCY_MAX, 
"cpu_frequency_max_hertz", 
GAUGE, 
"hertz", 
2, 
"frequency", 
"", 
"Clock rate of the fastest processor.")

// cgroup.c: the job's control group
METRIC(CGROUP_MEMORY, 
"cgroup_memory_bytes", 
GAUGE, 
"bytes", 
2, 
"cgroup", 
"", 
"Memory that the job's control group uses, 
file contents included.")
METRIC(CGROUP_MEMORY_LIMIT, 
"cgroup_memory_limit_bytes", 
GAUGE, 
"bytes", 
2, 
"cgroup", 
"", 
"Memory that the job's control group may use; missing where there is no limit.")
METRIC(CGROUP_MEMORY_PEAK, 
"cgroup_memory_peak_bytes", 
GAUGE, 
"bytes", 
2, 
"cgroup", 
"", 
"Most memory that the job's control group has used.")
METRIC(CGROUP_SWAP, 
"cgroup_swap_bytes", 
GAUGE, 
"bytes", 
2, 
"cgroup", 
"", 
"Swap space that the job's control group uses.")
METRIC(CGROUP_OOM_KILLS, 
"cgroup_oom_kills_total", 
COUNTER, 
"", 
2, 
"cgroup", 
"", 
"Processes of the job's control group killed because memory ran out.")
METRIC(CGROUP_CPU, 
"cgroup_cpu_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cgroup", 
"", 
"Processor time of the job's control group.")
METRIC(CGROUP_PERIODS, 
"cgroup_periods_total", 
COUNTER, 
"", 
2, 
"cgroup", 
"", 
"Periods in which the limit of processor time was looked at.")
METRIC(CGROUP_PERIODS_THROTTLED, 
"cgroup_throttled_periods_total", 
COUNTER, 
"", 
2, 
"cgroup", 
"", 
"Periods in which the limit of processor time was reached.")
METRIC(CGROUP_THROTTLED, 
"cgroup_throttled_seconds_total", 
COUNTER, 
"seconds", 
2, 
"cgroup", 
"", 
"Time in which the job's control group was held back by its limit.")
METRIC(CGROUP_TASKS, 
"cgroup_tasks", 
GAUGE, 
"", 
2, 
"cgroup", 
"", 
"Processes and threads in the job's control group.")

// processes.c: the processes of this user and of this job, 
/proc/PID/stat
METRIC(OWN_PROCESSES, 
"own_processes", 
GAUGE, 
"", 
2, 
"processes", 
"num_running_processes", 
"Processes of this user.")
METRIC(OWN_THREADS, 
"own_threads", 
GAUGE, 
"", 
2, 
"processes", 
"", 
"Threads of this user's processes.")
METRIC(OWN_RESIDENT, 
"own_resident_bytes", 
GAUGE, 
"bytes", 
2, 
"processes", 
"", 
"Resident memory of this user's processes, 
summed; shared pages count in each.")
METRIC(OWN_CPU, 
"own_cpu_seconds_total", 
COUNTER, 
"seconds", 
2, 
"processes", 
"", 
"Processor time of this user's processes, 
as far as seen also of those that have ended.")
METRIC(JOB_PROCESSES, 
"job_processes", 
GAUGE, 
"", 
2, 
"processes", 
"", 
"Processes of the job on this node, 
sonde's agent left out.")
METRIC(JOB_THREADS, 
"job_threads", 
GAUGE, 
"", 
2, 
"processes", 
"", 
"Threads of the job's processes.")
METRIC(JOB_RESIDENT, 
"job_resident_bytes", 
GAUGE, 
"bytes", 
2, 
"processes", 
"", 
"Resident memory of the job's processes, 
summed; shared pages count in each.")
METRIC(JOB_CPU, 
"job_cpu_seconds_total", 
COUNTER, 
"seconds", 
2, 
"processes", 
"", 
"Processor time of the job's processes, 
as far as seen also of those that have ended.")

// nvidia.c: one series a GPU, 
with its index (gpu) and uuid; of a MIG instance also its index in the GPU (mig)
METRIC(GPU_COUNT, 
"gpu_count", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"GPUs of one vendor that answer.")
METRIC(GPU_UP, 
"gpu_up", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"1 while the GPU answers, 
0 when it hangs or is lost.")
METRIC(GPU_UTILIZATION, 
"gpu_utilization_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"DeviceUtilization", 
"Share of the last second or less in which a kernel ran.")
METRIC(GPU_MEMORY_ACTIVITY, 
"gpu_memory_activity_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"", 
"Share of the last second or less in which its memory was read or written.")
METRIC(GPU_MEMORY_TOTAL, 
"gpu_memory_total_bytes", 
GAUGE, 
"bytes", 
3, 
"gpu", 
"", 
"Memory that the GPU has.")
METRIC(GPU_MEMORY_USED, 
"gpu_memory_used_bytes", 
GAUGE, 
"bytes", 
3, 
"gpu", 
"", 
"Memory of the GPU in use.")
METRIC(GPU_MEMORY_USED_PERCENT, 
"gpu_memory_used_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"DeviceMemoryUtilization", 
"Share of the GPU's memory in use.")
METRIC(GPU_POWER, 
"gpu_power_watts", 
GAUGE, 
"watts", 
3, 
"gpu", 
"DevicePowerUsage", 
"Power that the GPU draws.")
METRIC(GPU_ENERGY, 
"gpu_energy_joules_total", 
COUNTER, 
"joules", 
3, 
"gpu", 
"", 
"Energy used since the driver was loaded.")
METRIC(GPU_TEMPERATURE, 
"gpu_temperature_celsius", 
GAUGE, 
"celsius", 
3, 
"gpu", 
"", 
"Temperature of the GPU's chip.")
METRIC(GPU_MEMORY_TEMPERATURE, 
"gpu_memory_temperature_celsius", 
GAUGE, 
"celsius", 
3, 
"gpu", 
"", 
"Temperature of the GPU's memory.")
METRIC(GPU_SM_CLOCK, 
"gpu_sm_clock_hertz", 
GAUGE, 
"hertz", 
3, 
"gpu", 
"", 
"Clock of the GPU's processors.")
METRIC(GPU_MEMORY_CLOCK, 
"gpu_memory_clock_hertz", 
GAUGE, 
"hertz", 
3, 
"gpu", 
"", 
"Clock of the GPU's memory.")
METRIC(GPU_THROTTLE_POWER_CAP, 
"gpu_throttle_power_cap", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"1 while clocks are held down to keep the power limit.")
METRIC(GPU_THROTTLE_POWER_BRAKE, 
"gpu_throttle_power_brake", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"1 while clocks are held down because the machine's power supply asks for it.")
METRIC(GPU_THROTTLE_THERMAL, 
"gpu_throttle_thermal", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"1 while clocks are held down to keep the temperature limit.")
METRIC(GPU_THROTTLE_OVERHEATED, 
"gpu_throttle_overheated", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"1 while the hardware halves the clocks or more because it is too hot.")
METRIC(GPU_THROTTLE_HARDWARE, 
"gpu_throttle_hardware", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"1 while the hardware halves the clocks or more: too hot, 
the power brake, 
or too much power.")
METRIC(GPU_THROTTLE_REASONS, 
"gpu_throttle_reasons", 
GAUGE, 
"", 
4, 
"gpu", 
"", 
"All reasons for the present clocks, 
as the bits that NVML gives them.")
METRIC(GPU_PCIE_TRANSMIT, 
"gpu_pcie_transmit_bytes_total", 
COUNTER, 
"bytes", 
3, 
"gpu", 
"", 
"Bytes that the GPU sent over PCIe.")
METRIC(GPU_PCIE_RECEIVE, 
"gpu_pcie_receive_bytes_total", 
COUNTER, 
"bytes", 
3, 
"gpu", 
"", 
"Bytes that the GPU received over PCIe.")
METRIC(GPU_NVLINK_TRANSMIT, 
"gpu_nvlink_transmit_bytes_total", 
COUNTER, 
"bytes", 
3, 
"gpu", 
"", 
"Bytes that the GPU sent over all its NVLinks.")
METRIC(GPU_NVLINK_RECEIVE, 
"gpu_nvlink_receive_bytes_total", 
COUNTER, 
"bytes", 
3, 
"gpu", 
"", 
"Bytes that the GPU received over all its NVLinks.")
METRIC(GPU_ECC_CORRECTED, 
"gpu_ecc_corrected_total", 
COUNTER, 
"", 
3, 
"gpu", 
"", 
"Memory errors that were corrected, 
since the driver was loaded.")
METRIC(GPU_ECC_UNCORRECTED, 
"gpu_ecc_uncorrected_total", 
COUNTER, 
"", 
3, 
"gpu", 
"", 
"Memory errors that could not be corrected, 
since the driver was loaded.")
METRIC(GPU_XID_EVENTS, 
"gpu_xid_events_total", 
COUNTER, 
"", 
3, 
"gpu", 
"", 
"Critical errors (Xid) that the driver reported since this agent started.")
METRIC(GPU_XID_LAST, 
"gpu_xid_last", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"Number of the last critical error (Xid); missing while there was none.")
METRIC(GPU_PROCESSES, 
"gpu_processes", 
GAUGE, 
"", 
3, 
"gpu", 
"", 
"Processes that compute on the GPU, 
of all users.")
METRIC(GPU_PROCESS_MEMORY, 
"gpu_process_memory_bytes", 
GAUGE, 
"bytes", 
3, 
"gpu", 
"", 
"Memory of the GPU that those processes hold.")
METRIC(GPU_SM_ACTIVE, 
"gpu_sm_active_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"", 
"Share of time and processors of the GPU that were busy since the last sample.")
METRIC(GPU_SM_OCCUPANCY, 
"gpu_sm_occupancy_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"", 
"Warps in flight, 
of what the GPU's processors can hold.")
METRIC(GPU_TENSOR_ACTIVE, 
"gpu_tensor_active_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"", 
"Share of time in which tensor cores were busy.")
METRIC(GPU_DRAM_ACTIVE, 
"gpu_dram_active_percent", 
GAUGE, 
"percent", 
3, 
"gpu", 
"", 
"Memory bandwidth in use, 
of what the GPU has.")
METRIC(GPU_FP64_ACTIVE, 
"gpu_fp64_active_percent", 
GAUGE, 
"percent", 
4, 
"gpu", 
"", 
"Share of time in which double-precision units were busy.")
METRIC(GPU_FP32_ACTIVE, 
"gpu_fp32_active_percent", 
GAUGE, 
"percent", 
4, 
"gpu", 
"", 
"Share of time in which single-precision units were busy.")
METRIC(GPU_FP16_ACTIVE, 
"gpu_fp16_active_percent", 
GAUGE, 
"percent", 
4, 
"gpu", 
"", 
"Share of time in which half-precision units were busy.")

// src/agent: what sonde itself does
METRIC(SONDE_POINTS, 
"sonde_points_total", 
COUNTER, 
"", 
4, 
"sonde", 
"", 
"Points stored since this agent started.")
METRIC(SONDE_DROPPED, 
"sonde_dropped_total", 
COUNTER, 
"", 
1, 
"sonde", 
"", 
"Points not stored, 
by cause; there as soon as one is.")
METRIC(SONDE_STORE_BYTES, 
"sonde_store_bytes", 
GAUGE, 
"bytes", 
4, 
"sonde", 
"", 
"Size of the node's file.")
METRIC(SONDE_DB_SIZE, 
"sonde_store_megabytes", 
GAUGE, 
"megabytes", 
4, 
"sonde", 
"db_size", 
"Size of the node's file.")
METRIC(SONDE_SERIES, 
"sonde_series", 
GAUGE, 
"", 
4, 
"sonde", 
"", 
"Series in the node's file.")
METRIC(SONDE_PROGRAMS, 
"sonde_programs", 
GAUGE, 
"", 
4, 
"sonde", 
"", 
"Programs whose rings are attached.")
METRIC(SONDE_LINES, 
"sonde_lines_total", 
COUNTER, 
"", 
4, 
"sonde", 
"", 
"Text lines received.")
METRIC(SONDE_AGENT_CPU, 
"sonde_agent_cpu_seconds_total", 
COUNTER, 
"seconds", 
4, 
"sonde", 
"", 
"Processor time of the agent.")
METRIC(SONDE_AGENT_MEMORY, 
"sonde_agent_memory_bytes", 
GAUGE, 
"bytes", 
4, 
"sonde", 
"", 
"Resident memory of the agent, 
mapped files left out.")
METRIC(SONDE_LATENESS, 
"sonde_sample_lateness_seconds", 
GAUGE, 
"seconds", 
4, 
"sonde", 
"", 
"How long after its instant the last sample was begun.")
METRIC(SONDE_SAMPLE_TIME, 
"sonde_sample_seconds_total", 
COUNTER, 
"seconds", 
4, 
"sonde", 
"", 
"Time taken by sampling.")
METRIC(SONDE_SKIPPED, 
"sonde_samples_skipped_total", 
COUNTER, 
"", 
4, 
"sonde", 
"", 
"Sampling instants that went by without a sample.")
METRIC(SONDE_REFUSED, 
"sonde_connections_refused_total", 
COUNTER, 
"", 
4, 
"sonde", 
"", 
"Connections refused: another user's, 
or too many.")
