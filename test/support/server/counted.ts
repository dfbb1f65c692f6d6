/**
 * Preloaded into a server (NODE_OPTIONS): each thread of each of its processes tells over a socket in the folder
 * COUNTS_OF_TEST what it has allocated since it was last asked, and which messages it has exchanged with the process
 * above it.
 */
import { createServer } from 'node:net'
import { join } from 'node:path'
import { GCProfiler, setFlagsFromString } from 'node:v8'
import { isMainThread, threadId } from 'node:worker_threads'

export interface Counted {
  readonly main: boolean
  /** Bytes of the heap that were allocated since it was asked before. */
  readonly allocated: number
  /** Messages in batches to and from the supervisor so far, by direction and kind, and the batches themselves. */
  readonly messages: Readonly<Record<string, number>>
}

const messages: Record<string, number> = {}

function count(direction: 'to' | 'from', batch: unknown): void {
  // Those of Node.js about connections are no arrays.
  if (!Array.isArray(batch)) return
  for (const name of [`${direction}: batches`, ...batch.map(({ kind }: { kind: string }) => `${direction}: ${kind}`)])
    messages[name] = (messages[name] ?? 0) + 1
}

const folder = process.env.COUNTS_OF_TEST
if (folder !== undefined) {
  // What V8 leaves out of the heap depends on when it optimises, which is when the machine has time for it.
  setFlagsFromString('--no-opt')
  const { send } = process
  if (isMainThread && send) {
    process.send = (...args: unknown[]) => {
      count('to', args[0])
      return Reflect.apply(send, process, args)
    }
    process.on('message', (batch) => count('from', batch))
  }
  let profiler = new GCProfiler()
  profiler.start()
  let before = process.memoryUsage().heapUsed
  const server = createServer((socket) => {
    socket.on('error', () => {})
    const now = process.memoryUsage().heapUsed
    // What a collection has freed was allocated, too.
    const freed = (profiler.stop()?.statistics ?? []).map(
      ({ beforeGC, afterGC }) => beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize,
    )
    const allocated = now - before + freed.reduce((sum, each) => sum + each, 0)
    socket.end(JSON.stringify({ main: isMainThread, allocated, messages } satisfies Counted))
    profiler = new GCProfiler()
    profiler.start()
    before = process.memoryUsage().heapUsed
  })
  server.listen(join(folder, `${process.pid}-${threadId}`))
  server.unref()
}
