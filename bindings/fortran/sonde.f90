! sonde.f90 - sonde.h for Fortran 2008: module sonde.
!
!     program train
!         use sonde
!         integer(sonde_handle) :: loss
!         integer :: epoch
!         loss = sonde_gauge('loss', tags=[sonde_tag('model', 'sin')])
!         do epoch = 1, 3
!             call sonde_span_begin('epoch', [sonde_tag('number', epoch)])
!             call sonde_emit(loss, 1d0 / epoch)
!             call sonde_span_end()
!         end do
!     end program
!
! Compile this file together with your program, because a module file fits only the compiler that
! wrote it:
!
!     gfortran $(pkg-config --variable=fortran sonde)/sonde.f90 train.f90 \
!         $(pkg-config --libs sonde) -o train
!
! The promises of sonde.h hold: the procedures are thread-safe, and without `sonde run` each call is
! one branch. Trailing blanks of texts do not count. Times are ns since the epoch.
module sonde
    use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    implicit none
    private

    public :: sonde_handle, sonde_tag, sonde_span
    public :: sonde_gauge, sonde_counter, sonde_group
    public :: sonde_emit, sonde_set, sonde_add, sonde_emit_group, sonde_missing
    public :: sonde_span_begin, sonde_span_end, sonde_span_at, sonde_span_open, sonde_span_close
    public :: sonde_annotate, sonde_config, sonde_level, sonde_dropped

    ! The kind of handles. A handle is 0 if sonde is off; every procedure accepts 0.
    integer, parameter :: sonde_handle = c_int32_t

    ! One more than the limits of libsonde (16 tags; bytes of a key, of a value), so that libsonde
    ! sees and counts what exceeds a limit.
    integer, parameter :: tags_max = 17, key_max = 130, value_max = 1026

    ! A key and a value, made by sonde_tag(key, value); the value is text, an integer, a real or a
    ! logical (true, false).
    type :: sonde_tag
        private
        character(kind=c_char, len=key_max) :: key = c_null_char
        character(kind=c_char, len=value_max) :: value = c_null_char
    end type

    interface sonde_tag
        module procedure tag_text, tag_int32, tag_int64, tag_real32, tag_real64, tag_logical
    end interface

    ! A span that belongs to no thread; sonde_span_open makes it.
    type, bind(c) :: sonde_span
        private
        integer(c_int64_t) :: id = 0
        integer(c_int64_t) :: parent = 0
        integer(c_int64_t) :: start = 0
        integer(c_int32_t) :: process = 0
    end type

    type, bind(c) :: c_tag
        type(c_ptr) :: key = c_null_ptr
        type(c_ptr) :: value = c_null_ptr
    end type

    type, bind(c) :: c_metric
        type(c_ptr) :: name, unit, help
        integer(c_int) :: kind, level
        type(c_ptr) :: tags
        integer(c_size_t) :: tag_count
    end type

    ! Emits a point: now, or at a given time.
    interface sonde_emit
        module procedure emit_real32, emit_real64, emit_real32_at, emit_real64_at
    end interface

    ! Changes the metric's cell, which the agent samples: sonde_set sets it, sonde_add adds an
    ! amount.
    interface sonde_set
        module procedure set_real32, set_real64
    end interface
    interface sonde_add
        module procedure add_real32, add_real64, add_int32, add_int64
    end interface

    ! Emits one value for each metric of the group: now, or at a given time.
    interface sonde_emit_group
        module procedure emit_group, emit_group_at
    end interface

    interface
        function c_define(metric, size) bind(c, name='sonde_define_sized')
            import
            type(c_metric), intent(in) :: metric
            integer(c_size_t), value :: size
            integer(c_int32_t) :: c_define
        end function
        function c_group(metrics, count) bind(c, name='sonde_group')
            import
            integer(c_int32_t), intent(in) :: metrics(*)
            integer(c_size_t), value :: count
            integer(c_int32_t) :: c_group
        end function
        subroutine c_put(metric, number) bind(c, name='sonde_put_point')
            import
            integer(c_int32_t), value :: metric
            real(c_double), value :: number
        end subroutine
        subroutine c_put_at(metric, number, time_ns) bind(c, name='sonde_put_point_at')
            import
            integer(c_int32_t), value :: metric
            real(c_double), value :: number
            integer(c_int64_t), value :: time_ns
        end subroutine
        subroutine c_put_row(group, values) bind(c, name='sonde_put_row')
            import
            integer(c_int32_t), value :: group
            real(c_double), intent(in) :: values(*)
        end subroutine
        subroutine c_put_row_at(group, values, time_ns) bind(c, name='sonde_put_row_at')
            import
            integer(c_int32_t), value :: group
            real(c_double), intent(in) :: values(*)
            integer(c_int64_t), value :: time_ns
        end subroutine
        subroutine c_set(metric, number) bind(c, name='sonde_cell_set')
            import
            integer(c_int32_t), value :: metric
            real(c_double), value :: number
        end subroutine
        subroutine c_add(metric, number) bind(c, name='sonde_cell_add')
            import
            integer(c_int32_t), value :: metric
            real(c_double), value :: number
        end subroutine
        subroutine c_span_begin(name, tags, count) bind(c, name='sonde_span_begin_tags')
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_tag), intent(in) :: tags(*)
            integer(c_size_t), value :: count
        end subroutine
        subroutine sonde_span_end() bind(c, name='sonde_span_end')
        end subroutine
        subroutine c_span_at(name, start_ns, end_ns, tags, count) bind(c, name='sonde_span_at')
            import
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), value :: start_ns, end_ns
            type(c_tag), intent(in) :: tags(*)
            integer(c_size_t), value :: count
        end subroutine
        function c_span_open(name, tags, count, parent) bind(c, name='sonde_span_open')
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_tag), intent(in) :: tags(*)
            integer(c_size_t), value :: count
            type(c_ptr), value :: parent
            type(sonde_span) :: c_span_open
        end function
        subroutine c_span_close(span, name, tags, count) bind(c, name='sonde_span_close')
            import
            type(sonde_span), intent(in) :: span
            character(kind=c_char), intent(in) :: name(*)
            type(c_tag), intent(in) :: tags(*)
            integer(c_size_t), value :: count
        end subroutine
        subroutine c_annotate(text, tags, count) bind(c, name='sonde_annotate_tags')
            import
            character(kind=c_char), intent(in) :: text(*)
            type(c_tag), intent(in) :: tags(*)
            integer(c_size_t), value :: count
        end subroutine
        subroutine c_config(parameters, count) bind(c, name='sonde_config_tags')
            import
            type(c_tag), intent(in) :: parameters(*)
            integer(c_size_t), value :: count
        end subroutine
        ! Returns the level of the run, 0 to 4; 0 if sonde is off.
        function sonde_level() bind(c, name='sonde_level')
            import
            integer(c_int) :: sonde_level
        end function
        ! Returns the number of values that this process has dropped so far.
        function sonde_dropped() bind(c, name='sonde_dropped')
            import
            integer(c_int64_t) :: sonde_dropped
        end function
    end interface

contains

    pure function terminated(text)
        character(len=*), intent(in) :: text
        character(kind=c_char, len=len_trim(text) + 1) :: terminated
        terminated = trim(text)//c_null_char
    end function

    ! ------------------------------------------------------------ tags

    ! A text that is too long keeps one byte more than libsonde accepts, and the NUL.
    pure function tag_text(key, value) result(tag)
        character(len=*), intent(in) :: key, value
        type(sonde_tag) :: tag
        integer :: length
        ! Only as many bytes as the text needs: filling the rest with blanks takes longer.
        length = min(len_trim(key), key_max - 1)
        tag%key(:length + 1) = key(:length)//c_null_char
        length = min(len_trim(value), value_max - 1)
        tag%value(:length + 1) = value(:length)//c_null_char
    end function

    pure function tag_int32(key, value) result(tag)
        character(len=*), intent(in) :: key
        integer(int32), intent(in) :: value
        type(sonde_tag) :: tag
        tag = tag_int64(key, int(value, int64))
    end function

    pure function tag_int64(key, value) result(tag)
        character(len=*), intent(in) :: key
        integer(int64), intent(in) :: value
        type(sonde_tag) :: tag
        character(len=24) :: digits
        integer(int64) :: rest
        integer :: at
        ! By hand, because a formatted write takes longer than the whole span. From the negative
        ! side, because the smallest integer has no positive one.
        rest = value
        if (rest > 0) rest = -rest
        at = len(digits)
        do
            digits(at:at) = achar(iachar('0') - int(mod(rest, 10_int64)))
            rest = rest / 10
            at = at - 1
            if (rest == 0) exit
        end do
        if (value < 0) then
            digits(at:at) = '-'
            at = at - 1
        end if
        tag = tag_text(key, digits(at + 1:))
    end function

    pure function tag_real32(key, value) result(tag)
        character(len=*), intent(in) :: key
        real(real32), intent(in) :: value
        type(sonde_tag) :: tag
        character(len=32) :: digits
        integer :: places
        real(real32) :: back
        do places = 6, 9
            digits = shortest(real(value, real64), places)
            read (digits, *) back
            if (transfer(back, 0_int32) == transfer(value, 0_int32)) exit
        end do
        tag = tag_text(key, digits)
    end function

    pure function tag_real64(key, value) result(tag)
        character(len=*), intent(in) :: key
        real(real64), intent(in) :: value
        type(sonde_tag) :: tag
        character(len=32) :: digits
        integer :: places
        real(real64) :: back
        do places = 15, 17
            digits = shortest(value, places)
            read (digits, *) back
            if (transfer(back, 0_int64) == transfer(value, 0_int64)) exit
        end do
        tag = tag_text(key, digits)
    end function

    ! Writes a number like C's %.*g: 0.1, 1e-05, 3, nan.
    pure function shortest(value, places) result(text)
        real(real64), intent(in) :: value
        integer, intent(in) :: places
        character(len=32) :: text
        character(len=32) :: scientific, form
        character(len=:), allocatable :: digits, mantissa
        integer :: exponent, mark, last
        if (ieee_is_nan(value)) then
            text = 'nan'
            return
        end if
        if (abs(value) > huge(value)) then
            text = merge('inf ', '-inf', value > 0)
            return
        end if
        write (form, '(a,i0,a)') '(es32.', places - 1, 'e3)'
        write (scientific, form) abs(value)
        scientific = adjustl(scientific)
        mark = index(scientific, 'E')
        read (scientific(mark + 1:), *) exponent
        digits = scientific(1:1)//scientific(3:mark - 1)
        last = max(verify(digits, '0', back=.true.), 1)
        digits = digits(:last)
        if (exponent < -4 .or. exponent >= places) then
            mantissa = digits(1:1)
            if (last > 1) mantissa = mantissa//'.'//digits(2:)
            write (form, '(i0.2)') abs(exponent)
            mantissa = mantissa//'e'//merge('-', '+', exponent < 0)//trim(form)
        else if (exponent < 0) then
            mantissa = '0.'//repeat('0', -exponent - 1)//digits
        else if (last <= exponent + 1) then
            mantissa = digits//repeat('0', exponent + 1 - last)
        else
            mantissa = digits(:exponent + 1)//'.'//digits(exponent + 2:)
        end if
        if (value < 0) mantissa = '-'//mantissa
        text = mantissa
    end function

    pure function tag_logical(key, value) result(tag)
        character(len=*), intent(in) :: key
        logical, intent(in) :: value
        type(sonde_tag) :: tag
        tag = tag_text(key, merge('true ', 'false', value))
    end function

    ! Returns the number of tags; `out` points into `tags`, which is the caller's target.
    function converted(tags, out) result(count)
        type(sonde_tag), intent(in), target :: tags(:)
        type(c_tag), intent(out) :: out(tags_max)
        integer(c_size_t) :: count
        integer :: i
        count = min(size(tags), tags_max)
        do i = 1, int(count)
            out(i)%key = c_loc(tags(i)%key)
            out(i)%value = c_loc(tags(i)%value)
        end do
    end function

    ! ------------------------------------------------------------ metrics

    ! Defines a metric, or finds it. `level` 1 to 4: the handle is 0 in runs below this level.
    function sonde_gauge(name, unit, tags, help, level) result(handle)
        character(len=*), intent(in) :: name
        character(len=*), intent(in), optional :: unit, help
        type(sonde_tag), intent(in), optional :: tags(:)
        integer, intent(in), optional :: level
        integer(sonde_handle) :: handle
        handle = define(0_c_int, name, unit, tags, help, level)
    end function

    function sonde_counter(name, unit, tags, help, level) result(handle)
        character(len=*), intent(in) :: name
        character(len=*), intent(in), optional :: unit, help
        type(sonde_tag), intent(in), optional :: tags(:)
        integer, intent(in), optional :: level
        integer(sonde_handle) :: handle
        handle = define(1_c_int, name, unit, tags, help, level)
    end function

    function define(kind, name, unit, tags, help, level) result(handle)
        integer(c_int), intent(in) :: kind
        character(len=*), intent(in) :: name
        character(len=*), intent(in), optional :: unit, help
        type(sonde_tag), intent(in), optional :: tags(:)
        integer, intent(in), optional :: level
        integer(sonde_handle) :: handle
        character(kind=c_char, len=:), allocatable, target :: c_name, c_unit, c_help
        type(sonde_tag), allocatable, target :: kept(:)
        type(c_tag), target :: list(tags_max)
        type(c_metric) :: metric
        handle = 0
        if (sonde_level() == 0) return
        c_name = terminated(name)
        c_unit = c_null_char
        if (present(unit)) c_unit = terminated(unit)
        c_help = c_null_char
        if (present(help)) c_help = terminated(help)
        metric%name = c_loc(c_name)
        metric%unit = c_loc(c_unit)
        metric%help = c_loc(c_help)
        metric%kind = kind
        metric%level = 1
        if (present(level)) metric%level = int(level, c_int)
        metric%tags = c_null_ptr
        metric%tag_count = 0
        if (present(tags)) then
            allocate (kept, source=tags)
            metric%tag_count = converted(kept, list)
            metric%tags = c_loc(list)
        end if
        handle = c_define(metric, c_sizeof(metric))
    end function

    subroutine emit_real64(metric, value)
        integer(sonde_handle), intent(in) :: metric
        real(real64), intent(in) :: value
        if (metric /= 0) call c_put(metric, value)
    end subroutine

    subroutine emit_real32(metric, value)
        integer(sonde_handle), intent(in) :: metric
        real(real32), intent(in) :: value
        if (metric /= 0) call c_put(metric, real(value, c_double))
    end subroutine

    subroutine emit_real64_at(metric, value, time_ns)
        integer(sonde_handle), intent(in) :: metric
        real(real64), intent(in) :: value
        integer(int64), intent(in) :: time_ns
        if (metric /= 0) call c_put_at(metric, value, time_ns)
    end subroutine

    subroutine emit_real32_at(metric, value, time_ns)
        integer(sonde_handle), intent(in) :: metric
        real(real32), intent(in) :: value
        integer(int64), intent(in) :: time_ns
        if (metric /= 0) call c_put_at(metric, real(value, c_double), time_ns)
    end subroutine

    subroutine set_real64(metric, value)
        integer(sonde_handle), intent(in) :: metric
        real(real64), intent(in) :: value
        if (metric /= 0) call c_set(metric, value)
    end subroutine

    subroutine set_real32(metric, value)
        integer(sonde_handle), intent(in) :: metric
        real(real32), intent(in) :: value
        if (metric /= 0) call c_set(metric, real(value, c_double))
    end subroutine

    subroutine add_real64(metric, amount)
        integer(sonde_handle), intent(in) :: metric
        real(real64), intent(in) :: amount
        if (metric /= 0) call c_add(metric, amount)
    end subroutine

    subroutine add_real32(metric, amount)
        integer(sonde_handle), intent(in) :: metric
        real(real32), intent(in) :: amount
        if (metric /= 0) call c_add(metric, real(amount, c_double))
    end subroutine

    subroutine add_int32(metric, amount)
        integer(sonde_handle), intent(in) :: metric
        integer(int32), intent(in) :: amount
        if (metric /= 0) call c_add(metric, real(amount, c_double))
    end subroutine

    subroutine add_int64(metric, amount)
        integer(sonde_handle), intent(in) :: metric
        integer(int64), intent(in) :: amount
        if (metric /= 0) call c_add(metric, real(amount, c_double))
    end subroutine

    ! Makes a group of metrics that are measured together: one time for many values, the cheapest
    ! way to emit them.
    function sonde_group(metrics) result(group)
        integer(sonde_handle), intent(in) :: metrics(:)
        integer(sonde_handle) :: group
        group = c_group(metrics, size(metrics, kind=c_size_t))
    end function

    ! `values` has as many elements as the group has metrics.
    subroutine emit_group(group, values)
        integer(sonde_handle), intent(in) :: group
        real(real64), intent(in) :: values(:)
        if (group /= 0) call c_put_row(group, values)
    end subroutine

    subroutine emit_group_at(group, values, time_ns)
        integer(sonde_handle), intent(in) :: group
        real(real64), intent(in) :: values(:)
        integer(int64), intent(in) :: time_ns
        if (group /= 0) call c_put_row_at(group, values, time_ns)
    end subroutine

    ! Returns the value for a group's metric that could not be read: SONDE_MISSING_BITS of sonde.h.
    pure function sonde_missing() result(value)
        real(real64) :: value
        value = transfer(int(z'7ff8736f6e646500', int64), value)
    end function

    ! ------------------------------------------------------------ events

    ! Begins a span on this thread; each begin needs a sonde_span_end on the same thread.
    subroutine sonde_span_begin(name, tags)
        character(len=*), intent(in) :: name
        type(sonde_tag), intent(in), optional, target :: tags(:)
        type(c_tag) :: list(tags_max)
        integer(c_size_t) :: count
        if (sonde_level() == 0) return
        count = 0
        if (present(tags)) count = converted(tags, list)
        call c_span_begin(terminated(name), list, count)
    end subroutine

    ! Records a completed span. It does not nest.
    subroutine sonde_span_at(name, start_ns, end_ns, tags)
        character(len=*), intent(in) :: name
        integer(int64), intent(in) :: start_ns, end_ns
        type(sonde_tag), intent(in), optional, target :: tags(:)
        type(c_tag) :: list(tags_max)
        integer(c_size_t) :: count
        if (sonde_level() == 0) return
        count = 0
        if (present(tags)) count = converted(tags, list)
        call c_span_at(terminated(name), start_ns, end_ns, list, count)
    end subroutine

    ! Opens a span that belongs to no thread; any thread of the process closes it.
    function sonde_span_open(name, tags, parent) result(span)
        character(len=*), intent(in) :: name
        type(sonde_tag), intent(in), optional, target :: tags(:)
        type(sonde_span), intent(in), optional, target :: parent
        type(sonde_span) :: span
        type(c_tag) :: list(tags_max)
        type(c_ptr) :: around
        integer(c_size_t) :: count
        if (sonde_level() == 0) return
        count = 0
        if (present(tags)) count = converted(tags, list)
        around = c_null_ptr
        if (present(parent)) around = c_loc(parent)
        span = c_span_open(terminated(name), list, count, around)
    end function

    ! The name and tags passed here replace those passed to sonde_span_open.
    subroutine sonde_span_close(span, name, tags)
        type(sonde_span), intent(in) :: span
        character(len=*), intent(in) :: name
        type(sonde_tag), intent(in), optional, target :: tags(:)
        type(c_tag) :: list(tags_max)
        integer(c_size_t) :: count
        if (sonde_level() == 0) return
        count = 0
        if (present(tags)) count = converted(tags, list)
        call c_span_close(span, terminated(name), list, count)
    end subroutine

    ! Records an annotation at this instant.
    subroutine sonde_annotate(text, tags)
        character(len=*), intent(in) :: text
        type(sonde_tag), intent(in), optional, target :: tags(:)
        type(c_tag) :: list(tags_max)
        integer(c_size_t) :: count
        if (sonde_level() == 0) return
        count = 0
        if (present(tags)) count = converted(tags, list)
        call c_annotate(terminated(text), list, count)
    end subroutine

    ! Records parameters of the run, such as a learning rate.
    subroutine sonde_config(parameters)
        type(sonde_tag), intent(in), target :: parameters(:)
        type(c_tag) :: list(tags_max)
        integer(c_size_t) :: count
        integer :: i
        if (sonde_level() == 0) return
        do i = 1, size(parameters)
            count = converted(parameters(i:i), list)
            call c_config(list, count)
        end do
    end subroutine

end module sonde
