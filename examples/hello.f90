program hello
    use sonde
    implicit none
    integer(sonde_handle) :: loss, steps
    integer :: epoch, step
    loss = sonde_gauge('loss', tags=[sonde_tag('model', 'sin')])
    steps = sonde_counter('steps')
    do epoch = 1, 3
        call sonde_span_begin('epoch', [sonde_tag('number', epoch)])
        do step = 1, 10
            call sonde_emit(loss, 1d0 / (epoch * step))
            call sonde_add(steps, 1)
        end do
        call sonde_span_end()
    end do
end program
