"""The scheduler plugin: starts sonde if necessary, counts jobs and dags, knows all workers
including those that have ended, and serves Monitors.

The state is here and not in the Monitor, because one client may start the monitor and leave, and
another one may stop it.
"""

import asyncio
import inspect
import json
import logging
import math
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

import dask.config  # type: ignore[import]
from distributed.diagnostics.plugin import SchedulerPlugin  # type: ignore[import]
from distributed.protocol.pickle import dumps  # type: ignore[import]

import sonde
from sonde import _service
from sonde._dask import Graph
from sonde._emit import OpenSpan, open_span, span_at

from ._jobs import Jobs
from ._lives import Life
from ._recording import CLEARED, RECORDING, settings_tags
from ._settings import INSTANTS, KINDS, MARK, PLUGIN, Settings, check
from ._store import Store, connected
from ._stretches import SPAN, Stretches
from ._worker import END, WorkerPart, host_name

# Settings that would make sonde manage other nodes, too, or refuse to run as one of several copies.
# They are unset, because workers start the agents of their hosts themselves (`_node`).
LAUNCHERS = (
    "SLURM_JOB_NODELIST", "PBS_NODEFILE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PALS_SIZE", "SLURM_STEP_NUM_TASKS", "SONDE_HOSTS",
)  # fmt: skip
HANDLER = "sonde_worker"  # the handler that workers call
SETTLE_S = 3.0
LOOK_S = 0.02
LOOK_BEHIND_S = 0.001  # the delay after an instant until a stretch is checked


logger = logging.getLogger("sonde.dask")


@dataclass
class SharedRun:
    """The run that all monitors of this process share, because libsonde emits to one agent. The tag
    `cluster` separates their data. The last monitor ends the run."""

    service: _service.Service
    interval_ms: int
    monitors: int = 0


_shared: Optional[SharedRun] = None
_sharing = threading.Lock()


class SchedulerPart(SchedulerPlugin):  # type: ignore[misc]
    name = PLUGIN

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # periods of recording: [start, end or None], ns
        self.periods: list[list[Optional[int]]] = []
        self.cleared_ns = 0
        self.lives: list[Life] = []
        self.numbers: dict[str, int] = {}  # a worker's name → N
        self.life_spans: dict[str, OpenSpan] = {}  # by address
        self.job_spans: dict[int, OpenSpan] = {}
        self.run: Optional[SharedRun] = None  # None: the run around this cluster
        self.mark = 0
        self.given_span: Any = None
        # None: the run around this cluster manages its nodes
        self.node: Optional[dict[str, Any]] = None
        self.host = host_name()
        self.recording: Optional[OpenSpan] = None  # the span of the last period
        self.warning = ""  # a setting that cannot be met; attach() reports it
        # the timer for the current stretch
        self.looks: Optional[asyncio.TimerHandle] = None

    # ---- start and end

    async def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler
        self.loop = asyncio.get_running_loop()
        self.attached_ns = time.time_ns()
        await asyncio.get_running_loop().run_in_executor(None, self._start_service)
        try:
            self.settings.cluster = str(scheduler.address or scheduler.id)
            self.store = Store(connected(self.environment), self.settings.cluster)
            self.level = int(self.environment["SONDE_LEVEL"])
            sonde.connect(self.environment["SONDE_SOCKET"], self.level)
            self.at = sonde.group([sonde.gauge(name, tags=self._tags()) for name in ("dask_job", "dask_dag")])
            self.marks = sonde.gauge(MARK, tags=self._tags(worker="scheduler"))
            self.stretches = Stretches(self.attached_ns, self._grain_ms(), self._put_stretch, self._open_stretch)
            self.jobs = Jobs(self.settings.job_type == "manual", self._opened, self._closed, self._go)
            self.transition = self.jobs.transition
            if self.jobs.manual:
                self.job_spans[0] = self._job_span(0)  # the job before the first new_job()
            self._go(0, 0)
            for state in sorted(scheduler.workers.values(), key=lambda state: _natural(str(state.name))):
                self._number(str(state.name))
            scheduler.handlers[HANDLER] = self.take_worker
        except BaseException:
            self._stop_service()
            raise

    def _start_service(self) -> None:
        """Uses the run around this cluster, else starts a run of this process."""
        global _shared
        with _sharing:
            if _shared and _shared.service.runs:
                if self.settings.interval_ms < _shared.interval_ms:
                    raise RuntimeError(
                        f"another monitor of this program samples every {_shared.interval_ms} ms, and a program has one agent: "
                        f"attach the monitor with polling_interval={self.settings.interval_ms} first"
                    )
                self._join(_shared)
                return
            self._start_alone()

    def _start_alone(self) -> None:
        global _shared
        around = {name: value for name, value in os.environ.items() if name.startswith("SONDE_")}
        if around.get("SONDE_URL") and int(around.get("SONDE_LEVEL") or 0):
            if int(around["SONDE_LEVEL"]) < self.settings.level:
                raise RuntimeError(f"this cluster is in a run of level {around['SONDE_LEVEL']}; what is tracked needs sonde run -l {self.settings.level}")
            self.environment = around
            rate_ms = self._rate_ms()
            if rate_ms is not None and rate_ms > self.settings.interval_ms:
                self.warning = (
                    f"polling_interval={self.settings.interval_ms}: the run around this cluster samples every {rate_ms} ms, and so are the rows apart; "
                    f"start it with sonde run --rate {self.settings.interval_ms / 1000:g}"
                )
            return
        options = [f"--rate={self.settings.interval_ms / 1000}", "--open-hub"]
        if self.settings.mem_limit:
            os.makedirs(self.settings.dump_loc, exist_ok=True)
            options.append(f"--run-dir={os.path.abspath(self.settings.dump_loc)}")
        _shared = SharedRun(_service.Service(max(3, self.settings.level), options=options, without=LAUNCHERS), self.settings.interval_ms)
        self._join(_shared)

    def _join(self, run: SharedRun) -> None:
        run.monitors += 1
        self.run = run
        self.environment = run.service.environment
        self.node = self._for_nodes()

    def _job(self, folder: str) -> dict[str, Any]:
        with open(os.path.join(folder, "job.json")) as file:
            job: dict[str, Any] = json.load(file)
        return job

    def _grain_ms(self) -> int:
        """Returns the grid of all sampling instants: of agents, which may have another rate in a
        run around the cluster, and of workers."""
        rate_ms = self._rate_ms()
        return 1 if rate_ms is None else math.gcd(self.settings.interval_ms, rate_ms) or 1

    def _rate_ms(self) -> Optional[int]:
        """Returns the agent's sampling interval. None: this process did not start the run of the
        agent.
        """
        try:
            return round(float(self._job(os.path.dirname(self.environment["SONDE_SOCKET"]))["rate"]) * 1000)
        except (OSError, LookupError, ValueError):
            return None

    def _for_nodes(self) -> dict[str, Any]:
        """Makes the input of `sonde node` for another host."""
        folder = os.path.dirname(self.environment["SONDE_SOCKET"])
        job = self._job(folder)
        with open(os.path.join(folder, "key"), "rb") as key:
            secret = key.read().hex()
        with open(os.path.join(folder, "token")) as token:
            word = token.read().strip()
        return {
            "job": job["job"], "folder": folder, "token": word, "key": secret, "record": job.get("record", ""), "command": job["command"],
            "hub": self.environment["SONDE_HUB"], "agent": [f"--telemetry-level={job['level']}", f"--rate={job['rate']}"],
        }  # fmt: skip

    def _stop_service(self) -> None:
        global _shared
        run, self.run = self.run, None
        if run is None:
            return
        with _sharing:
            run.monitors -= 1
            if run.monitors:
                return
            if _shared is run:
                _shared = None
            run.service.stop()

    async def close(self) -> None:
        """Stops the run if this plugin started it; the recording is kept."""
        self.stop()
        self.stretches.cut(time.time_ns())
        if self.looks is not None:
            self.looks.cancel()
        if self.settings.csv:
            await self._write()
        for span in [*self.job_spans.values(), *self.life_spans.values()]:
            span.close(None)
        self.job_spans.clear()
        self.life_spans.clear()
        if self.scheduler.handlers.get(HANDLER) == self.take_worker:
            del self.scheduler.handlers[HANDLER]
        await asyncio.get_running_loop().run_in_executor(None, self._stop_service)

    async def _write(self) -> None:
        from ._rows import Rows

        try:
            Rows(await self.recorded()).write(self.settings.csv)
        except Exception:
            logger.exception("sonde: the files could not be written to %s", self.settings.csv)

    def _tags(self, **more: Any) -> dict[str, Any]:
        return {"cluster": self.settings.cluster, **more}

    def _put_stretch(self, start_ns: int, end_ns: int, job: int, dag: int) -> None:
        span_at(SPAN, start_ns, end_ns, self._tags(job=job, dag=dag))

    def _open_stretch(self, start_ns: int, job: int, dag: int) -> Callable[[int], None]:
        span = open_span(SPAN, self._tags(job=job, dag=dag), None, start_ns)
        return lambda end_ns: span.close(None, end_ns)

    def _look(self) -> None:
        """Opens the current stretch once it holds an instant: a timer for each stretch that lasts
        long enough."""
        now_ns = time.time_ns()
        due_ns = self.stretches.look(now_ns)
        self.looks = None if due_ns is None else self.loop.call_later((due_ns - now_ns) / 1e9 + LOOK_BEHIND_S, self._look)

    def _look_later(self) -> None:
        if self.looks is None:
            self._look()

    # ---- workers

    def _number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    async def take_worker(self, identity: dict[str, Any]) -> dict[str, Any]:
        """Registers a worker that has the plugin, and returns its settings."""
        life = Life(
            self._number(identity["name"]), identity["name"], identity["address"], identity["host"], identity["pid"], identity["devices"],
            identity["joined_ns"], time.time_ns(),
        )
        if life.address not in self.life_spans:
            # so that each stretch is a worker's as a whole or not at all
            life.begin_ns = self._cut()
            self.lives.append(life)
            self.life_spans[life.address] = open_span("dask_worker", self._tags(**life.tags()), None, life.begin_ns)
        told = {"worker": life.worker, "cluster": self.settings.cluster, "socket": self.environment["SONDE_SOCKET"], "level": self.level}
        elsewhere = life.host != self.host and life.host not in self.environment.get("SONDE_NODELIST", "").split(",")
        return told | {"node": self.node} if elsewhere and self.node else told

    def remove_worker(self, scheduler: Any, worker: str, **kwargs: Any) -> None:
        end_ns = self._cut()
        span = self.life_spans.pop(worker, None)
        if span is not None:
            span.close(None, end_ns)
        for life in self.lives:
            if life.address == worker and life.end_ns is None:
                life.end_ns = end_ns

    # ---- jobs and dags

    def update_graph(self, scheduler: Any, client: Any = None, keys: Any = (), tasks: Any = (), annotations: Any = None, **kwargs: Any) -> None:
        known = scheduler.tasks.get

        def state(key: Any) -> Optional[str]:
            task = known(key)
            return None if task is None else task.state

        span = self._span_of(scheduler, (annotations or {}).get("span") or {}) if self.settings.spans else None
        self.jobs.graph(str(client), keys or (), tasks or keys or (), state, span)

    def _span_of(self, scheduler: Any, of_keys: dict[Any, Any]) -> Optional[str]:
        """Returns the name of the outermost distributed.span around this graph. Dask puts whole
        groups of tasks, such as all tasks of one function, into the span of the first task; plugins
        see only that span. The annotations of the client stay in the computation for later graphs;
        a copy distinguishes old annotations from new ones."""
        computation = scheduler.computations[-1] if scheduler.computations else None
        said = getattr(computation, "annotations", None)
        if "spans" not in scheduler.extensions or said is None:
            return _outermost(of_keys.values())
        given = said.get("span")
        if given is None or given is self.given_span:
            # Collections that were made in a span have tuples as keys; Dask gives each such group a
            # span of its own.
            return _outermost(span for key, span in of_keys.items() if isinstance(key, tuple))
        self.given_span = said["span"] = dict(given)
        return _outermost([given])

    def restart(self, scheduler: Any) -> None:
        self.jobs.restarted()

    def remove_client(self, scheduler: Any, client: str) -> None:
        job = self.jobs.job_of(client)
        if job is not None and job in self.job_spans:
            self.job_spans.pop(job).close(None)

    def _job_span(self, job: int) -> OpenSpan:
        return open_span("dask_job", self._tags(job=job), None)

    def _opened(self, graph: Graph) -> None:
        if graph.job not in self.job_spans:
            self.job_spans[graph.job] = self._job_span(graph.job)
        graph.handle = open_span("dask_dag", self._tags(job=graph.job, dag=graph.dag), self.job_spans[graph.job])

    def _closed(self, graph: Graph) -> None:
        if isinstance(graph.handle, OpenSpan):
            graph.handle.close({"error": "1"} if graph.failed else None)

    def _go(self, job: int, dag: int) -> None:
        now_ns = time.time_ns()
        self.stretches.go(now_ns, job, dag)
        self._look_later()
        self.at(job, dag, time_ns=now_ns)

    # ---- requests of Monitors

    def _cut(self) -> int:
        """Ends a stretch and returns the current time."""
        now_ns = time.time_ns()
        self.stretches.cut(now_ns)
        self._look_later()
        return now_ns

    def record(self) -> None:
        if not self.periods or self.periods[-1][1] is not None:
            self.periods.append([self._cut(), None])
            self.recording = open_span(RECORDING, self._tags(**settings_tags(self.settings, self.attached_ns)), None, self.periods[-1][0])

    def stop(self) -> None:
        if self.periods and self.periods[-1][1] is None:
            self.periods[-1][1] = self._cut()
            if self.recording is not None:
                self.recording.close(None, self.periods[-1][1])

    def clear(self) -> None:
        self.cleared_ns = self._cut()
        span_at(CLEARED, self.cleared_ns, self.cleared_ns, self._tags())

    def new_job(self, job: Optional[int]) -> int:
        number = self.jobs.new_job(job)
        for span in self.job_spans.values():
            span.close(None)
        self.job_spans = {number: self._job_span(number)}
        return number

    def successful_jobs(self) -> list[int]:
        return self.jobs.successful()

    def where(self) -> dict[str, str]:
        return {name: self.environment.get(f"SONDE_{name.upper()}", "") for name in ("url", "job", "token_file")}

    def _periods(self) -> list[tuple[int, int]]:
        """Returns the periods of recording, without cleared ones."""
        now_ns = time.time_ns()
        found = []
        for begin, end in self.periods:
            assert begin is not None
            begin, end = max(begin, self.cleared_ns), end or now_ns
            if begin < end:
                found.append((begin, end))
        return found

    async def settle(self) -> None:
        """Waits until the store has all data that were emitted and sampled before now, or before
        the end of recording. For a worker whose task holds the interpreter lock, and for an agent
        that does not sample, it waits at most SETTLE_S."""
        self.mark += 1
        self.marks(self.mark)
        waiting = {"scheduler"}
        try:
            call = self.scheduler.broadcast(msg={"op": MARK, "number": self.mark}, on_error="ignore")
            answers = await asyncio.wait_for(call, SETTLE_S)
            waiting |= {answer for answer in answers.values() if isinstance(answer, str)}
        except asyncio.TimeoutError:
            pass
        end_ns = self.periods[-1][1] if self.periods else None
        await asyncio.get_running_loop().run_in_executor(None, self._settle, waiting, end_ns or time.time_ns())

    def _settle(self, waiting: set[str], end_ns: int) -> None:
        interval_ns = self.settings.interval_ms * 1_000_000
        instant_ns = end_ns // interval_ns * interval_ns
        sampled = [INSTANTS, *(KINDS[name][1] for name in self.settings.tracking if KINDS[name][0] == "gpu")]
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            marks = [one for one in self.store.latest(MARK) if one["tags"].get("cluster") == self.settings.cluster]
            here = {one["tags"].get("worker") for one in marks if one["value"] >= self.mark}
            behind = [
                one for metric in sampled for one in self.store.latest(metric)
                # a worker that has ended long ago does not emit
                if instant_ns - 3 * interval_ns < one["t_ns"] < instant_ns
            ]  # fmt: skip
            if waiting <= here and not behind:
                return
            time.sleep(LOOK_S)

    async def recorded(self) -> dict[str, Any]:
        """Returns the data for the rows of all workers."""
        await self.settle()
        return await asyncio.get_running_loop().run_in_executor(None, self._recorded)

    def _recorded(self) -> dict[str, Any]:
        from ._rows import gather

        return gather(self.store, self.settings, self._periods(), list(self.lives), self.attached_ns)

    async def tasks(self) -> dict[str, Any]:
        """Returns the data for Monitor.task_prefixes() and report()."""
        await self.settle()
        return await asyncio.get_running_loop().run_in_executor(None, self._tasks)

    def _tasks(self) -> dict[str, Any]:
        from ._tasks import gather

        return gather(self.store, self.settings, self._periods(), list(self.lives), self.attached_ns)

    async def peaks(self, **asked: Any) -> list[Any]:
        self._cut()
        await self.settle()
        return await asyncio.get_running_loop().run_in_executor(None, lambda: self._peaks(**asked))

    def _peaks(self, **asked: Any) -> list[Any]:
        from ._peaks import peaks

        periods = self._periods()
        questions = self.stretches.questions(periods[0][0], periods[-1][1]) if periods else []
        return peaks(self.store, self.settings, periods, questions, list(self.lives), **asked)

    async def errors(self) -> list[str]:
        return await asyncio.get_running_loop().run_in_executor(None, self.store.errors, self.attached_ns, time.time_ns())


def _natural(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdigit() else (1, 0, name)


def _outermost(spans: Iterable[Any]) -> Optional[str]:
    for span in spans:
        names = span.get("name") if isinstance(span, dict) else None
        if names and tuple(names) != ("default",):
            return str(names[0])
    return None


# ---- functions that clients run on the scheduler


async def attach(settings: Settings, dask_scheduler: Any = None) -> Optional[Exception]:
    """Implements install(), for clients."""
    try:
        await install(settings, dask_scheduler)
    except (OSError, RuntimeError) as error:
        return error
    warning = dask_scheduler.plugins[PLUGIN].warning
    return RuntimeWarning(warning) if warning else None


async def start(tracking: list[str], dask_scheduler: Any = None) -> Optional[Exception]:
    """Starts recording with these metrics instead of those of attach()."""
    part = dask_scheduler.plugins.get(PLUGIN)
    if part is None:
        return _not_attached()
    settings = part.settings
    try:
        check(tracking, settings.job_type, settings.interval_ms, settings.mem_limit, settings.custom)
        if set(tracking) != set(settings.tracking):
            await install(replace(settings, tracking=tracking), dask_scheduler)
    except (OSError, RuntimeError, ValueError) as error:
        return error
    dask_scheduler.plugins[PLUGIN].record()
    return None


async def install(settings: Settings, dask_scheduler: Any = None) -> None:
    await remove(dask_scheduler=dask_scheduler)
    part = SchedulerPart(settings)
    await dask_scheduler.register_scheduler_plugin(plugin=part, name=PLUGIN, idempotent=False)
    register = dask_scheduler.register_worker_plugin
    more = {"idempotent": False} if "idempotent" in inspect.signature(register).parameters else {}
    answers = await register(comm=None, plugin=dumps(WorkerPart(settings)), name=PLUGIN, **more)
    bad = {address: answer for address, answer in answers.items() if isinstance(answer, dict) and answer.get("status") == "error"}
    if bad:
        address, answer = next(iter(bad.items()))
        await remove(dask_scheduler=dask_scheduler)
        raise RuntimeError(f"the monitor cannot work on worker {address}{f' and {len(bad) - 1} more' if len(bad) > 1 else ''}: {_words(answer)}")


async def preload(server: Any) -> None:
    """Starts a monitor from Dask's configuration when the scheduler starts."""
    if not hasattr(server, "register_scheduler_plugin"):
        return
    tracking = list(dask.config.get("sonde.tracking", ["total-mem", "mem-util", "compute-util", "tasks"]))
    job_type, interval_ms = dask.config.get("sonde.job-type", "client"), dask.config.get("sonde.polling-interval", 200)
    check(tracking, job_type, interval_ms, 0, [])
    await install(Settings(tracking, job_type=job_type, interval_ms=round(interval_ms), csv=str(dask.config.get("sonde.csv", ""))), dask_scheduler=server)
    part = server.plugins[PLUGIN]
    if part.warning:
        logger.warning("sonde: %s", part.warning)
    part.record()


async def remove(dask_scheduler: Any = None) -> None:
    part = dask_scheduler.plugins.get(PLUGIN)
    if part is None:
        return
    # other monitors still use the agents of other hosts
    if part.run is None or part.run.monitors == 1:
        await dask_scheduler.broadcast(msg={"op": END}, on_error="ignore")
    if PLUGIN in dask_scheduler.worker_plugins:
        await dask_scheduler.unregister_worker_plugin(comm=None, name=PLUGIN)
    dask_scheduler.remove_plugin(name=PLUGIN)
    await part.close()


async def ask(method: str, arguments: dict[str, Any], dask_scheduler: Any = None) -> Any:
    """Calls a method of the plugin. Returns an error for the client to raise, so that it does not
    appear in the scheduler's log."""
    part = dask_scheduler.plugins.get(PLUGIN)
    if part is None:
        return _not_attached()
    try:
        answer = getattr(part, method)(**arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except (LookupError, OSError, RuntimeError, ValueError) as error:
        return error


def _not_attached() -> RuntimeError:
    return RuntimeError("no monitor is attached to this cluster: call attach() first")


def _words(answer: dict[str, Any]) -> str:
    text = str(answer.get("exception_text") or answer.get("text") or answer)
    return f"sonde is not installed there (pip install sonde): {text}" if "No module named 'sonde" in text else text


