import { spawnSync } from 'node:child_process'
import t from 'tap'

/** A thread that has left 32 MiB behind. Its timer is called where it would be due. */
const PROGRAM = `
  const { collectWhenIdle } = await import(process.argv[1])
  const { getHeapStatistics } = await import('node:v8')
  const used = () => getHeapStatistics().used_heap_size / 2 ** 20
  let look
  globalThis.setInterval = (task) => {
    look = task
    return { unref() {} }
  }
  collectWhenIdle()
  let kept = Array.from({ length: 2 ** 22 }, (_, n) => n)
  kept = undefined
  const left = used()
  await new Promise((resolve) => setImmediate(resolve))
  look()
  const afterBusy = used()
  // Time that others have the processor for counts as work.
  for (let tries = 0; tries < 40 && used() > 20; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 250))
    look()
  }
  console.log(JSON.stringify({ left, afterBusy, afterIdle: used(), gc: typeof globalThis.gc }))`

t.test('what a busy thread has left is collected when it is idle', async (t) => {
  const module = new URL('../../common/idle-heap.js', import.meta.url).href
  const args = ['--input-type=module', '--eval', PROGRAM, module]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  t.equal(stderr, '')
  const { left, afterBusy, afterIdle, gc } = JSON.parse(stdout)
  t.ok(left > 30, `${left} MiB are used`)
  t.ok(afterBusy > 30, `${afterBusy} MiB after a look at the busy thread`)
  t.ok(afterIdle < 20, `${afterIdle} MiB after a look at the idle thread`)
  t.equal(gc, 'undefined', 'the function that collects is no global one')
})
