import t from 'tap'
import { bytes } from '../../../support/content/content.js'
import { Between } from '../../../support/gateway/between.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { until } from '../../../support/waiting.js'

const CHUNK = 64 * 1024
const place = { Bucket: 'bucket', Key: 'k' }

t.test('an object that is replaced, and read, while a range of it is asked for is not taken for altered', async (t) => {
  const server = await startInProcess(t, 'full')
  const between = await Between.start(t, server.gateway)
  await server.restart({ gateway: { url: between.url, account: server.gateway.account } })
  const { s3 } = server
  await s3.createBucket({ Bucket: place.Bucket })
  const put = (Body: Buffer) => s3.putObject({ ...place, Body, ServerSideEncryption: 'AES256' })
  const read = async (more = {}) =>
    Buffer.from((await (await s3.getObject({ ...place, ...more })).Body?.transformToByteArray()) ?? [])
  const [short, long] = [bytes('short', CHUNK + 100), bytes('long', 3 * CHUNK)]
  await put(short)
  t.same(await read(), short)

  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let held = 0
  between.fate = async ({ method, path, headers }) => {
    if (method === 'GET' && path.includes('/download/') && headers.range !== undefined && held++ === 0) await released
    return 'pass' as const
  }
  const ranged = read({ Range: `bytes=${CHUNK}-${CHUNK + 50}` })
  await until('the range is asked for', () => held > 0)
  await put(long)
  t.same(await read(), long)
  release()
  t.same(await ranged, long.subarray(CHUNK, CHUNK + 51))
  t.notOk(server.lines.some((line) => /altered/.test(JSON.stringify(line))))
})
