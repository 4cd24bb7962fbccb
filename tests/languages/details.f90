! Tests numbers in tags.
program details
    use sonde
    use, intrinsic :: iso_fortran_env, only: int64
    implicit none
    call sonde_annotate('numbers ', [ &
        sonde_tag('tenth', 0.1d0), sonde_tag('third', 1d0 / 3), sonde_tag('small', 1d-5), &
        sonde_tag('smaller', -2.5d-300), sonde_tag('four', 1d-4), sonde_tag('large', 1d22), &
        sonde_tag('whole', 1200d0), sonde_tag('zero', 0), &
        sonde_tag('minus', -9223372036854775807_int64), sonde_tag('single', 0.25), &
        sonde_tag('yes', .true.), sonde_tag('no', .false.), sonde_tag('text ', 'a  ')])
end program
