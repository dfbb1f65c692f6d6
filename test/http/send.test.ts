import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Reply } from '../../src/api/request.js'
import { S3Error } from '../../src/common/errors/s3-error.js'
import { late } from '../../src/http/reply.js'
import { type SentReply, send } from '../../src/http/send.js'
import { listen } from '../support/server/listen.js'

const place = { id: 'ID', resource: '/b/k' }

/** Has one request answered with `reply`. */
async function answered(t: Test, reply: Reply, method = 'GET'): Promise<{ response: Response; sent: SentReply }> {
  let resolve = (_: SentReply) => {}
  const sent = new Promise<SentReply>((settle) => (resolve = settle))
  const server = createServer(async (incoming: IncomingMessage, outgoing: ServerResponse) =>
    resolve(await send(incoming, outgoing, reply, place.id, () => place)),
  )
  const url = await listen(server, t)
  const response = await fetch(url, { method })
  return { response, sent: await sent }
}

t.test('headers that cannot be sent are an error, and the download behind them is given up', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    let discarded = 0
    const download = {
      first: 0,
      last: 0,
      consume: async () => {},
      lend: async () => {},
      discard: () => void discarded++,
    }
    const reply: Reply = { status: 200, headers: { etag: '"a"', 'x-amz-meta-a': '\u20ac' }, body: { download } }
    const { response, sent } = await answered(t, reply, method)
    t.equal(response.status, 500)
    t.equal(response.headers.get('x-amz-request-id'), 'ID')
    t.equal(response.headers.get('etag'), null)
    t.match(await response.text(), method === 'GET' ? /<Code>InternalError<.*<RequestId>ID</ : /^$/)
    t.match(sent, { failure: { code: 'InternalError' } })
    t.equal(discarded, 1)
  }
})

t.test('a late answer that fails before it is sent fails for its client alone', async (t) => {
  // Without a look at it, the rejection would end the process here.
  const reply = late(Promise.reject(new S3Error('NoSuchUpload')))
  await turn()
  const { response, sent } = await answered(t, reply)
  t.equal(response.status, 404)
  t.match(await response.text(), /<Code>NoSuchUpload</)
  t.match(sent, { failure: { code: 'NoSuchUpload' } })
})
