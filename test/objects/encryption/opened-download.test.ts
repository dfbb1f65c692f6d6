import t from 'tap'
import { SplitDownload } from '../../../src/objects/encryption/opened-download.js'

t.test('a download that ends early fails its rest, and nothing else', async (t) => {
  const unhandled: unknown[] = []
  const listener = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', listener)
  t.teardown(() => process.off('unhandledRejection', listener))
  const broken = { lend: () => Promise.reject(new Error('cut')) }
  await t.rejects(
    new SplitDownload(broken, 10).rest(() => {}),
    /cut/,
  )
  // Of a download whose rest is not wanted any more either.
  new SplitDownload(broken, 10)
  await new Promise((resolve) => setImmediate(resolve))
  t.same(unhandled, [])
})
