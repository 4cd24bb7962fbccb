# The native routines of src/sonde_r.c. .onLoad fills them in; they stay NULL if the library cannot
# be loaded. Then sonde is off, and `problem` is the reason.
problem <- NULL
C_load <- C_define <- C_group <- C_is_on <- C_time <- C_emit <- C_set <- C_add <- C_clock <- NULL
C_span_begin <- C_span_end <- C_span_open <- C_span_close <- C_span_at <- NULL
C_annotate <- C_config <- C_level <- C_dropped <- C_check <- C_connect <- NULL

# NAMESPACE does not name the library, because a program must run without it. There is no
# .onUnload: handlers of fork() may call the library until the process ends.
.onLoad <- function(libname, pkgname) {
    package <- parent.env(environment())
    tryCatch({
        library <- library.dynam("sonde", pkgname, libname)
        for (routine in getDLLRegisteredRoutines(library)$.Call) {
            assign(paste0("C_", routine$name), routine, envir = package)
        }
        .Call(C_load, package)
    }, error = function(e) {
        text <- paste0("sonde records nothing of this program: ", conditionMessage(e),
                       "; install the R package sonde again with the libsonde of this machine")
        assign("problem", gsub("\\s*\n\\s*", " ", text), envir = package)
        if (nzchar(Sys.getenv("SONDE_LOG"))) {
            cat("sonde: warning: ", problem, "\n", sep = "", file = stderr())
        }
    })
}

# The functions below convert values with a class for the routines, which call them.

as_text <- function(value) {
    tryCatch(enc2utf8(paste(toString(value), collapse = ", ")),
             error = function(e) class(value)[1L])
}

as_numbers <- function(value) {
    if (is.data.frame(value)) {
        return(vapply(value, function(column) as.numeric(as_numbers(column)), numeric(nrow(value))))
    }
    if (inherits(value, "difftime")) {
        numbers <- as.numeric(value, units = "secs")
    } else if (is.numeric(value) || is.logical(value)) {
        numbers <- as.numeric(value)
    } else {
        stop("the value must be a number, not of class ", class(value)[1L], call. = FALSE)
    }
    dim(numbers) <- dim(value)
    numbers
}

as_times <- function(time) as.POSIXct(time)
