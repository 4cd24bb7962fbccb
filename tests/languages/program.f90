! The program of test_languages.py in Fortran: program BASE, where BASE is in ns since the epoch.
program languages
    use sonde
    use, intrinsic :: iso_fortran_env, only: int64, real64
    implicit none
    integer(int64), parameter :: ms = 1000000_int64
    integer(sonde_handle) :: loss, written, hidden, warmth, steps, both
    type(sonde_span) :: task, part
    character(len=32) :: argument
    integer(int64) :: base
    integer :: i

    call get_command_argument(1, argument)
    read (argument, *) base
    loss = sonde_gauge('loss', tags=[sonde_tag('model', 'sin'), sonde_tag('rank', 3)])
    written = sonde_gauge('written', 'bytes', help='bytes written so far')
    hidden = sonde_gauge('hidden', level=2)
    warmth = sonde_gauge('warmth')
    steps = sonde_counter('steps', tags=[sonde_tag('exact', .true.), sonde_tag('rate', 0.1d0)])
    both = sonde_group([sonde_gauge('left'), sonde_gauge('right')])

    call sonde_config([sonde_tag('lr', 0.01), sonde_tag('optimizer', 'adam')])
    do i = 1, 10
        call sonde_emit(loss, 1d0 / i)
        call sonde_emit(written, 1024d0 * i, base + i * ms)
        call sonde_emit(hidden, real(i))
        call sonde_add(steps, 1)
    end do
    call sonde_set(warmth, 21.5)
    call sonde_emit_group(both, [1d0, 2d0], base)
    call sonde_emit_group(both, [3d0, sonde_missing()], base + ms)
    call sonde_span_begin('epoch', [sonde_tag('number', 1)])
    do i = 1, 3
        call sonde_span_begin('step', [sonde_tag('number', i), sonde_tag('phase', 'warm up')])
        call sonde_span_end()
    end do
    call sonde_span_end()
    call sonde_span_at('load', base, base + 1500 * ms, [sonde_tag('file', 'a b')])
    task = sonde_span_open('task', [sonde_tag('of', 'none')])
    part = sonde_span_open('part', parent=task)
    call sonde_span_close(part, 'part')
    call sonde_span_close(task, 'task', [sonde_tag('of', 'none')])
    call sonde_annotate('done', [sonde_tag('file', 'ck-12')])
end program
