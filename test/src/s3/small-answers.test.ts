import { connect } from 'node:net'
import t from 'tap'
import { EMPTY_SHA256 } from '../../../common/sigv4.js'
import { sign } from '../../suites/sign.js'
import { contentMd5 } from '../../support/content/content.js'
import { GatewayUser } from '../../support/gateway/gateway-user.js'
import { startInProcess } from '../../support/server/in-process.js'
import { exchange, headText } from '../../support/sign/raw.js'
import { send } from '../../support/sign/send.js'

const KEYS = { accessKeyId: 'key', secretAccessKey: 'secret-key' }

// Answers that clients meet seldom, and S3 has settled.

t.test('answers', async (t) => {
  const { endpoint, gateway } = await startInProcess(t, 'full', { identities: [KEYS] })
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = KEYS
  const server = { endpoint, accessKey, secretKey, region: 'us-east-1' }
  const ask = (method: string, target: string, headers: Record<string, string> = {}, body = '') =>
    send(server, { method, target, headers, body: Buffer.from(body) })
  t.equal((await ask('PUT', '/box')).status, 200)
  t.equal((await ask('PUT', '/box/k', {}, 'x')).status, 200)

  t.test('names of buckets that S3 reserves', async (t) => {
    const names = [
      ...['xn--box', 'sthree-box', 'sthree-configurator', 'amzn-s3-demo-box', 'box-s3alias', 'box--ol-s3', 'box.mrap'],
      ...['box--x-s3', 'box--table-s3'],
    ]
    for (const name of names) {
      const { status, code, message } = await ask('PUT', `/${name}`)
      t.same([status, code], [400, 'InvalidBucketName'], name)
      t.match(message, /which S3 reserves/)
      t.equal((await ask('HEAD', `/${name}`)).status, 404, `${name} was not created`)
    }
    for (const name of ['xn-box', 'box-xn--a', 's3alias', 'mrap'])
      t.equal((await ask('PUT', `/${name}`)).status, 200, name)
  })

  t.test('a bucket with such a name, which exists, stays in use', async (t) => {
    const user = new GatewayUser(gateway)
    await user.login()
    await user.call('web.MakeBucket', { bucketName: 'xn--there' })
    t.equal((await ask('PUT', '/xn--there/k', {}, 'x')).status, 200)
    t.equal((await ask('PUT', '/xn--there')).status, 200, 'created again, as any other')
    t.equal((await ask('DELETE', '/xn--there/k')).status, 204)
    t.equal((await ask('DELETE', '/xn--there')).status, 204)
  })

  t.test('numbers of GetObjectAttributes that are none', async (t) => {
    const wanted = { 'x-amz-object-attributes': 'ETag,ObjectParts' }
    for (const header of ['x-amz-max-parts', 'x-amz-part-number-marker']) {
      t.equal((await ask('GET', '/box/k?attributes=', { ...wanted, [header]: 'abc' })).status, 200, header)
      t.equal((await ask('GET', '/box/k?attributes=', { ...wanted, [header]: '-1' })).code, 'InvalidArgument', header)
    }
  })

  t.test('two Host headers', async (t) => {
    const { host } = new URL(server.endpoint)
    for (const second of [host, 'elsewhere']) {
      const text = `GET /box HTTP/1.1\r\nHost: ${host}\r\nhost: ${second}\r\nConnection: close\r\n\r\n`
      const { text: answer } = await exchange(server, (socket) => socket.end(text))
      t.match(answer, /^HTTP\/1\.1 400 /, second)
      t.match(answer, '<Code>BadRequest</Code>')
    }
  })

  t.test('an empty PUT that waits for 100-continue gets it, and leaves the connection open', async (t) => {
    const { hostname, port, host } = new URL(server.endpoint)
    const signed = (method: string, target: string, headers: Record<string, string>) =>
      headText(method, target, {
        host,
        ...sign(server, { method, target, headers, payloadHash: EMPTY_SHA256 }).headers,
      })
    const expecting = { expect: '100-continue', 'content-length': '0' }
    const refused = { ...expecting, ...contentMd5('x') }
    const requests = [
      ...[1, 2, 3].map((n) => signed('PUT', `/box/empty-${n}`, expecting)),
      signed('PUT', '/box/refused', refused),
      signed('PUT', '/absent/empty', expecting),
      signed('GET', '/box/k', { expect: '100-continue' }),
    ]
    const socket = connect(Number(port), hostname)
    t.teardown(() => socket.destroy())
    let text = ''
    let closed = false
    socket.setEncoding('latin1')
    socket.on('close', () => {
      closed = true
    })
    const statuses: string[] = []
    for (const request of requests) {
      text = ''
      socket.write(request)
      await new Promise<void>((resolve, reject) => {
        const look = (chunk: string) => {
          text += chunk
          const [, head = '', body] = text.split('\r\n\r\n')
          const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
          if (body === undefined || body.length < length) return
          socket.off('data', look)
          resolve()
        }
        socket.on('data', look)
        socket.once('close', () => reject(new Error(`closed after ${text}`)))
      })
      // botocore takes a final answer in its place for the status of the next request, too.
      const [first, final = ''] = text.split('\r\n\r\n')
      t.equal(first, 'HTTP/1.1 100 Continue')
      statuses.push(final.slice(9, 12))
      t.notMatch(text, /connection: close/i)
    }
    t.same(statuses, ['200', '200', '200', '400', '404', '200'])
    t.notOk(closed)
  })
})
