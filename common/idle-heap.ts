import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Time between two looks, ms. */
const LOOK_MS = 15_000
/** Share of its time that the event loop of an idle thread works, at most. */
const IDLE_SHARE = 0.05
/** What the heap must have gained since it was collected, bytes: a collection takes some 20 ms. */
const WORTH_BYTES = 4 * 1024 * 1024

/**
 * Has V8 collect the heap of this thread when the thread has been idle since the last look, and something has gathered.
 * V8 itself gives memory back some seconds after it has collected the whole heap, but it collects that for a need of
 * memory alone: what a start or a load has left below the limit of the heap would stay for as long as the thread is
 * idle.
 * @param collect collects the heap
 */
export function collectWhenIdle(collect = collector()): void {
  let kept = 0
  let before = performance.eventLoopUtilization()
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > IDLE_SHARE || getHeapStatistics().used_heap_size - kept < WORTH_BYTES) return
    collect()
    kept = getHeapStatistics().used_heap_size
    before = performance.eventLoopUtilization()
  }, LOOK_MS).unref()
}

/** Contexts that are made while V8 has this flag have a function that collects the heap: no other call does. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc') as () => void
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}
