import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import type { Reply } from '../../../src/api/request.js'
import { late } from '../../../src/http/reply.js'
import { type SentReply, send } from '../../../src/http/send.js'
import { listen } from '../../support/server/listen.js'

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
    const reply: Reply = { status: 200, headers: { etag: '"a"', 'x-amz-meta-\u20ac': 'a' }, body: { download } }
    const { response, sent } = await answered(t, reply, method)
    t.equal(response.status, 500)
    t.equal(response.headers.get('x-amz-request-id'), 'ID')
    t.equal(response.headers.get('etag'), null)
    t.match(await response.text(), method === 'GET' ? /<Code>InternalError<.*<RequestId>ID</ : /^$/)
    t.match(sent, { failure: { code: 'InternalError' } })
    t.equal(discarded, 1)
  }
})

t.test('the text of a header reaches the client as it was meant, whatever it is', async (t) => {
  const server = createServer((incoming, outgoing) => {
    // As middleware may do.
    outgoing.setHeader('x-powered-by', 'a framework')
    const headers = { 'content-length': 1, 'content-disposition': asked, 'x-amz-meta-a': asked }
    void send(incoming, outgoing, { status: 200, headers, body: 'x' }, place.id, () => place)
  })
  const url = await listen(server, t)
  let asked = ''
  for (const [text, received] of [
    ['a.pdf', 'a.pdf'],
    ['\u00e9.pdf', '\u00e9.pdf'],
    ['\u00c3\u00a9.pdf', '\u00c3\u00a9.pdf'],
    ['\u00e8\u00aa\u009e.pdf', '\u00e8\u00aa\u009e.pdf'],
    ['\u8a9e.pdf', '\u00e8\u00aa\u009e.pdf'],
    ['a\r\nb: c\0', 'a  b: c '],
  ] as const) {
    asked = text
    const { status, headers } = await fetch(url)
    t.equal(status, 200, text)
    t.equal(headers.get('content-disposition'), received)
    t.equal(headers.get('x-amz-meta-a'), received)
  }
})

t.test('only exact types go without a sandbox, and nothing guesses a type', async (t) => {
  const ask = async (headers: Reply['headers'], ownOrigin?: true) =>
    (await answered(t, { status: 200, headers, body: '<script>1</script>', ...(ownOrigin && { ownOrigin }) })).response
      .headers
  for (const type of ['application/pdf', 'Application/PDF ; version=1.7', ' application/pdf']) {
    const headers = await ask({ 'content-type': type })
    t.equal(headers.get('content-security-policy'), null, type)
    t.equal(headers.get('x-content-type-options'), 'nosniff')
  }
  for (const type of [
    ...['text/html', 'image/svg+xml', 'application/pdfx', 'application/pdf-x', 'application/pdf/x', 'application'],
    ...['application/pdf, text/html', 'application/pdf,text/html', 'application/pdf; a="b, text/html"', ', text/html'],
    ...['application/pdf;, text/html', 'text/html;application/pdf', 'text/html, application/pdf', 'application/ pdf'],
    ...['application/pdf text/html', 'application/pdf\ttext/html', '"application/pdf"', ''],
    ...['application/pdf; a=\u00e9', '\u00a0application/pdf', 'application/pdf\r\ntext/html', 'x/application/pdf'],
  ])
    t.equal((await ask({ 'content-type': type })).get('content-security-policy'), 'sandbox', JSON.stringify(type))
  t.equal((await ask({})).get('content-security-policy'), 'sandbox', 'without a type')
  const own = { 'content-type': 'text/html', 'content-security-policy': "img-src 'none'", 'x-content-type-options': '' }
  t.equal((await ask(own)).get('content-security-policy'), "img-src 'none', sandbox", 'no operation lifts it')
  t.equal((await ask(own)).get('x-content-type-options'), 'nosniff')
  t.equal((await ask({ 'content-type': 'text/html' }, true)).get('content-security-policy'), null)
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
