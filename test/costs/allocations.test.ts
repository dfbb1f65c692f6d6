import t from 'tap'
import { compareWithRecorded, requestMany, startCounted } from './counts.js'

const WARM = 500
const COUNTED = 1000
/** Bytes that a thread may allocate for work of its own, as that of the services beside reads. */
const NOISE = 1024

/** On one connection, one request after the other. A write also allocates in the thread of the services. */
t.test('bytes that a request allocates', async (t) => {
  const { server, counts } = await startCounted(t)
  const found: Record<string, number> = {}
  for (const method of ['PUT', 'GET', 'HEAD'] as const) {
    await requestMany(t, server, method, WARM)
    await counts()
    await requestMany(t, server, method, COUNTED)
    for (const { main, allocated } of await counts()) {
      const thread = main ? 'the proxy' : 'the services'
      found[`${method}, ${thread}`] = Math.round(allocated / COUNTED)
    }
  }
  t.comment(JSON.stringify(found))
  // Objects of Node.js itself are many of them, and differ between its versions.
  compareWithRecorded(t, `bytes allocated, Node.js ${process.versions.node.split('.')[0]}`, found, NOISE)
})
