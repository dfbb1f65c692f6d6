import t from 'tap'
import { z } from 'zod'
import { defineCall } from '../../../src/plugins/calls/define-call.js'
import { csvDocument } from '../../../src/plugins/calls/format.js'
import { shapeOf } from '../../../src/plugins/calls/shape.js'
import { definePlugin } from '../../../src/plugins/define-plugin.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const item = z.object({
  Name: z.string(),
  Size: z.number().int().optional(),
  Tags: z.array(z.string()),
  Note: z.string().nullable(),
})
const result = z.object({ Items: z.array(item) })
const items = ['a', 'b,c', '"d"\r\n', '=1+1', 'ü'].map((Name, i) => ({ Name, Size: i, Tags: ['x'], Note: null }))

t.test('a row of names and a row for each item', async (t) => {
  const text = csvDocument(shapeOf(result, 'output'), 'Items', { Items: items })
  t.equal(text, 'Name,Size,Note\r\na,0,\r\n"b,c",1,\r\n"""d""\r\n",2,\r\n\'=1+1,3,\r\nü,4,\r\n')
  const formulas = ['=1', '+1', '-1', '@a', '\t=1', '\r=1', '＝1', '-', 'a\n=1', 'a\r=1']
  const escaped = csvDocument(shapeOf(result, 'output'), 'Items', {
    Items: formulas.map((Name) => ({ Name, Size: -5, Note: Name })),
  })
  for (const [row, Name] of formulas.entries()) {
    const marked = Name.startsWith('a') ? Name : `'${Name}`
    const quoted = /[\r\n]/.test(Name) ? `"${marked}"` : marked
    t.equal(escaped.split('\r\n')[row + 1], `${quoted},-5,${quoted}`, JSON.stringify(Name))
  }
  t.equal(csvDocument(shapeOf(result, 'output'), 'Items', { Items: [] }), 'Name,Size,Note\r\n')
})

t.test('a list in three forms, in pages', async (t) => {
  const shelf = definePlugin({
    name: 'shelf',
    create: () => ({
      operations: [
        defineCall({
          name: 'ListItems',
          source: 'README.md',
          summary: 'Lists items.',
          access: 'signed',
          on: { method: 'GET', resource: 'service', path: '/-/shelf/v1/items' },
          result,
          pages: 'Items',
          csv: { list: 'Items' },
          answer: async () => ({ Items: items }),
        }),
        defineCall({
          name: 'GetItems',
          source: 'README.md',
          summary: 'Returns items.',
          access: 'signed',
          on: { method: 'GET', resource: 'service', path: '/-/shelf/v1/items.csv' },
          result,
          csv: { list: 'Items', usual: true },
          answer: async () => ({ Items: items }),
        }),
      ],
    }),
  })
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner], plugins: [shelf()] })
  const get = (path: string, query: Record<string, string> = {}, method = 'GET') =>
    signedRequest(endpoint, owner, { method, path, query })
  const page = await get('/-/shelf/v1/items', { format: 'csv', 'max-items': '2' })
  t.match(page, {
    status: 200,
    body: 'Name,Size,Note\r\na,0,\r\n"b,c",1,\r\n',
    headers: { 'content-type': /^text\/csv/ },
  })
  const token = String(page.headers['x-dealgate-next-continuation-token'])
  const last = await get('/-/shelf/v1/items', { format: 'csv', 'continuation-token': token })
  t.match(last.body, /^Name,Size,Note\r\n"""d""/)
  t.notOk('x-dealgate-next-continuation-token' in last.headers)
  t.match(JSON.parse((await get('/-/shelf/v1/items')).body), { Items: [{ Name: 'a', Tags: ['x'] }, {}, {}, {}, {}] })
  t.match(await get('/-/shelf/v1/items', { format: 'yaml' }), { status: 400 })
  const whole = await get('/-/shelf/v1/items.csv')
  t.match(whole, { status: 200, headers: { etag: /^"/ } })
  t.equal(whole.body.split('\r\n').length, 8)
  const head = await get('/-/shelf/v1/items.csv', {}, 'HEAD')
  t.match(head.headers, { 'content-length': String(Buffer.byteLength(whole.body)) })
  t.match(JSON.parse((await get('/-/shelf/v1/items.csv', { format: 'json' })).body), { Items: [{ Name: 'a' }] })
  t.match(await get('/-/jobs/v1', { format: 'csv' }), { status: 400, body: /format must be json or xml/ })
})

t.throws(
  () =>
    defineCall({
      name: 'Broken',
      source: 'README.md',
      summary: 'x',
      access: 'signed',
      on: { method: 'GET', resource: 'service', path: '/-/shelf/v1/x' },
      result: z.object({ Names: z.array(z.string()) }),
      csv: { list: 'Names' },
      answer: async () => ({ Names: [] }),
    }),
  /"Names" is not a list of objects/,
)
