// sonde.hpp - sonde.h for C++14 and later. Header only; link with -lsonde.
//
//     #include <sonde.hpp>
//
//     int main()
//     {
//         const sonde::gauge loss("loss", {{"model", "sin"}});
//         const sonde::gauge step_seconds("step_seconds", {}, {"seconds"});
//         for (int epoch = 1; epoch <= 3; epoch++) {
//             sonde::span span("epoch", {{"number", epoch}});
//             sonde::timer timer(step_seconds);
//             loss.emit(train(epoch));
//         }
//     }
//
// The promises of sonde.h hold: all functions are thread-safe, none throws, and without `sonde run`
// each call is one branch. Only a task_span allocates memory.
#ifndef SONDE_HPP
#define SONDE_HPP

#include "sonde.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sonde
{

// Text that ends with a NUL, valid during the call. A std::string_view does not fit: it has no NUL.
class text
{
  public:
    text(const char *chars) noexcept : chars_(chars ? chars : "")
    {
    }
    text(const std::string &string) noexcept : chars_(string.c_str())
    {
    }
    const char *c_str() const noexcept
    {
        return chars_;
    }

  private:
    const char *chars_;
};

// A key and a value: text, a number or a bool. Numbers have their shortest form (0.1), bools are
// "true" and "false". The text has to outlive the tag.
class tag
{
  public:
    tag(text key, text value) noexcept : key_(key.c_str()), value_(value.c_str())
    {
    }
    tag(text key, const char *value) noexcept : tag(key, text(value))
    {
    }
    tag(text key, bool value) noexcept : tag(key, text(value ? "true" : "false"))
    {
    }

    template <class Number,
              class = typename std::enable_if<std::is_arithmetic<Number>::value &&
                                              !std::is_same<Number, bool>::value>::type>
    tag(text key, Number value) noexcept : key_(key.c_str()), value_(nullptr)
    {
        write(value, std::is_floating_point<Number>(), std::is_signed<Number>());
    }

    const char *key() const noexcept
    {
        return key_;
    }
    const char *value() const noexcept
    {
        return value_ ? value_ : number_;
    }

  private:
    template <class Number, class Sign>
    void write(Number value, std::true_type /* floating point */, Sign) noexcept
    {
        const double number = static_cast<double>(value);
        for (int digits = 15; digits <= 17; digits++) {
            std::snprintf(number_, sizeof number_, "%.*g", digits, number);
            // strtod uses the program's locale, as the text in number_ does.
            const double back = std::strtod(number_, nullptr);
            if (!(back < number) && !(number < back))
                break;
        }
        for (char &c : number_)
            if (c == ',')
                c = '.';
    }
    template <class Number>
    void write(Number value, std::false_type, std::true_type /* signed */) noexcept
    {
        std::snprintf(number_, sizeof number_, "%lld", static_cast<long long>(value));
    }
    template <class Number> void write(Number value, std::false_type, std::false_type) noexcept
    {
        std::snprintf(number_, sizeof number_, "%llu", static_cast<unsigned long long>(value));
    }

    const char *key_, *value_; // value_ NULL: the number
    char number_[32] = {0};
};

using tags = std::initializer_list<tag>;
using time_point = std::chrono::system_clock::time_point;

// The members of sonde_metric besides name, kind and tags.
struct details {
    details(text unit_text = "", text help_text = "", int metric_level = 1) noexcept
        : unit(unit_text.c_str()), help(help_text.c_str()), level(metric_level)
    {
    }
    const char *unit, *help;
    int level; // 1 to 4: the metric is off in runs below this level
};

namespace detail
{

inline std::int64_t nanoseconds(time_point time) noexcept
{
    using std::chrono::duration_cast;
    return duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

template <class Rep, class Period>
double seconds(std::chrono::duration<Rep, Period> duration) noexcept
{
    return std::chrono::duration_cast<std::chrono::duration<double>>(duration).count();
}

// The tags in libsonde's form. libsonde accepts 16 and counts any further one as refused; the 17th
// is passed on so that it is counted.
class c_tags
{
  public:
    explicit c_tags(tags from) noexcept
    {
        for (const tag &each : from) {
            if (count_ == tags_.size())
                break;
            tags_[count_++] = sonde_tag{each.key(), each.value()};
        }
    }
    const sonde_tag *data() const noexcept
    {
        return tags_.data();
    }
    std::size_t size() const noexcept
    {
        return count_;
    }

  private:
    std::array<sonde_tag, 17> tags_;
    std::size_t count_ = 0;
};

class metric
{
  public:
    // Returns false if sonde is off, the level is above the run's, or the definition is invalid.
    explicit operator bool() const noexcept
    {
        return handle_ != 0;
    }
    sonde_handle handle() const noexcept
    {
        return handle_;
    }

    // Emits a point: now, or at a given time.
    void emit(double value) const noexcept
    {
        sonde_emit(handle_, value);
    }
    void emit(double value, time_point time) const noexcept
    {
        sonde_emit_at(handle_, value, nanoseconds(time));
    }

    // Adds an amount to the metric's cell, which the agent samples.
    void add(double amount) const noexcept
    {
        sonde_add(handle_, amount);
    }

    // Overloads for durations, in seconds.
    template <class Rep, class Period>
    void emit(std::chrono::duration<Rep, Period> duration) const noexcept
    {
        emit(seconds(duration));
    }
    template <class Rep, class Period>
    void add(std::chrono::duration<Rep, Period> duration) const noexcept
    {
        add(seconds(duration));
    }

  protected:
    metric() noexcept = default;
    metric(sonde_kind kind, text name, tags with, const details &more) noexcept
    {
        if (sonde_level() == 0)
            return;
        const c_tags converted(with);
        sonde_metric definition{};
        definition.name = name.c_str();
        definition.unit = more.unit;
        definition.help = more.help;
        definition.kind = kind;
        definition.level = more.level;
        definition.tags = converted.data();
        definition.tag_count = converted.size();
        handle_ = sonde_define(&definition);
    }

    sonde_handle handle_ = 0;
};

} // namespace detail

// Goes up and down: a loss, a temperature. A default-constructed gauge is off.
class gauge : public detail::metric
{
  public:
    gauge() noexcept = default;
    explicit gauge(text name, tags with = {}, const details &more = {}) noexcept
        : metric(SONDE_GAUGE, name, with, more)
    {
    }

    // Sets the metric's cell, which the agent samples.
    void set(double value) const noexcept
    {
        sonde_set(handle_, value);
    }
};

// Only grows: bytes read, iterations done. Readers show its rate.
class counter : public detail::metric
{
  public:
    counter() noexcept = default;
    explicit counter(text name, tags with = {}, const details &more = {}) noexcept
        : metric(SONDE_COUNTER, name, with, more)
    {
    }
};

// Metrics that are measured together: one timestamp for N values, the cheapest way to emit them.
//
//     sonde::group<2> both({a, b});
//     both.emit({{1.0, sonde::missing()}});
template <std::size_t N> class group
{
  public:
    static_assert(N >= 1 && N <= 4096, "a group has 1 to 4096 metrics");

    explicit group(const std::array<detail::metric, N> &metrics) noexcept
    {
        std::array<sonde_handle, N> handles;
        for (std::size_t i = 0; i < N; i++)
            handles[i] = metrics[i].handle();
        handle_ = sonde_group(handles.data(), N);
    }
    template <class... Metrics,
              class = typename std::enable_if<(sizeof...(Metrics) + 1 == N)>::type>
    explicit group(const detail::metric &first, const Metrics &...rest) noexcept
        : group(std::array<detail::metric, N>{{first, rest...}})
    {
    }

    explicit operator bool() const noexcept
    {
        return handle_ != 0;
    }

    void emit(const std::array<double, N> &values) const noexcept
    {
        sonde_emit_group(handle_, values.data());
    }
    void emit(const std::array<double, N> &values, time_point time) const noexcept
    {
        sonde_emit_group_at(handle_, values.data(), detail::nanoseconds(time));
    }

  private:
    sonde_handle handle_ = 0;
};

// The value of a group's metric that could not be read.
inline double missing() noexcept
{
    return sonde_missing();
}

// A span of this thread, from here to the end of the scope. Spans nest: the object stays on the
// thread and in the scope that made it, so it cannot be moved.
class span
{
  public:
    explicit span(text name, tags with = {}) noexcept
    {
        if (sonde_level() == 0)
            return;
        const detail::c_tags converted(with);
        sonde_span_begin_tags(name.c_str(), converted.data(), converted.size());
        begun_ = true;
    }
    ~span()
    {
        if (begun_)
            sonde_span_end();
    }
    span(const span &) = delete;
    span &operator=(const span &) = delete;

  private:
    // false if sonde was off at the begin, even if sonde_connect turns it on later
    bool begun_ = false;
};

// A span that belongs to no thread: of a coroutine, a callback, or work that moves between threads.
// It ends when close() is called, or with its owner.
class task_span
{
  public:
    task_span() noexcept = default;
    explicit task_span(text name, tags with = {}) noexcept
    {
        open(name, with, nullptr);
    }
    task_span(text name, tags with, const task_span &parent) noexcept
    {
        open(name, with, &parent.span_);
    }
    ~task_span()
    {
        close();
    }
    task_span(task_span &&other) noexcept
        : span_(other.span_), name_(std::move(other.name_)), tags_(std::move(other.tags_))
    {
        other.span_.id = 0;
    }
    task_span &operator=(task_span &&other) noexcept
    {
        if (this != &other) {
            close();
            span_ = other.span_;
            name_ = std::move(other.name_);
            tags_ = std::move(other.tags_);
            other.span_.id = 0;
        }
        return *this;
    }

    void close() noexcept
    {
        if (span_.id == 0)
            return;
        std::array<sonde_tag, 16> converted;
        std::size_t count = 0;
        for (const auto &each : tags_)
            if (count < converted.size())
                converted[count++] = sonde_tag{each.first.c_str(), each.second.c_str()};
        sonde_span_close(&span_, name_.c_str(), converted.data(), count);
        span_.id = 0;
    }

  private:
    void open(text name, tags with, const sonde_span *parent) noexcept
    {
        if (sonde_level() == 0)
            return;
        try {
            name_ = name.c_str();
            for (const tag &each : with)
                tags_.emplace_back(each.key(), each.value());
        } catch (const std::bad_alloc &) {
            return; // without memory for its end, the span is not recorded
        }
        const detail::c_tags converted(with);
        span_ = sonde_span_open(name.c_str(), converted.data(), converted.size(), parent);
    }

    sonde_span span_{};
    std::string name_;
    std::vector<std::pair<std::string, std::string>> tags_;
};

// Records a completed span. It does not nest.
inline void span_at(text name, time_point start, time_point end, tags with = {}) noexcept
{
    const detail::c_tags converted(with);
    sonde_span_at(name.c_str(), detail::nanoseconds(start), detail::nanoseconds(end),
                  converted.data(), converted.size());
}

// Measures the time to the end of its scope, or to stop(). A gauge gets a point with the seconds; a
// counter's cell grows by them. If the metric is off, the timer does not read the clock.
class timer
{
  public:
    explicit timer(const gauge &metric) noexcept : timer(metric, false)
    {
    }
    explicit timer(const counter &metric) noexcept : timer(metric, true)
    {
    }
    ~timer()
    {
        stop();
    }
    timer(const timer &) = delete;
    timer &operator=(const timer &) = delete;

    // Returns the measured time; 0 if the metric is off, or at a second call.
    std::chrono::nanoseconds stop() noexcept
    {
        using std::chrono::nanoseconds;
        if (!handle_)
            return nanoseconds(0);
        const auto elapsed = clock::now() - start_;
        if (adds_)
            sonde_add(handle_, detail::seconds(elapsed));
        else
            sonde_emit(handle_, detail::seconds(elapsed));
        handle_ = 0;
        return std::chrono::duration_cast<nanoseconds>(elapsed);
    }

  private:
    using clock = std::chrono::steady_clock;

    timer(const detail::metric &metric, bool adds) noexcept : handle_(metric.handle()), adds_(adds)
    {
        if (handle_)
            start_ = clock::now();
    }

    sonde_handle handle_;
    bool adds_;
    clock::time_point start_{};
};

// Records an annotation at this instant.
inline void annotate(text words, tags with = {}) noexcept
{
    const detail::c_tags converted(with);
    sonde_annotate_tags(words.c_str(), converted.data(), converted.size());
}

// Records parameters of the run, such as a learning rate: sonde::config({{"lr", 0.01}}).
inline void config(tags parameters) noexcept
{
    for (const tag &each : parameters) {
        const sonde_tag parameter{each.key(), each.value()};
        sonde_config_tags(&parameter, 1);
    }
}

// The level of the run, 0 to 4; 0 if sonde is off.
inline int level() noexcept
{
    return sonde_level();
}

// The number of values that this process has dropped so far; see sonde.h.
inline std::uint64_t dropped() noexcept
{
    return sonde_dropped();
}

} // namespace sonde

#endif
