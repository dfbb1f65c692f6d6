import t from 'tap'
import { lint } from '../../support/content/lint-openapi.js'
import { startPaymentScene } from '../payment/payment-client.js'
import { startScene } from '../platform/platform-client.js'

interface Operation {
  readonly security: readonly object[]
  readonly parameters: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: { properties: object } }>> }
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

async function documentOf(url: string): Promise<OpenApi> {
  const response = await fetch(`${url}/-/openapi.json`)
  if (response.status !== 200) throw new Error(`There is no document: ${response.status}`)
  return (await response.json()) as OpenApi
}

t.test('the documents of the services describe what they serve', async (t) => {
  const { platform } = await startScene(t)
  const { payment } = await startPaymentScene(t)
  const open = await startPaymentScene(t, { mode: 'open', words: { coin: 'acme', stable: 'usd', wallet: 'key' } })
  for (const url of [platform.url, payment.url, open.payment.url]) {
    const document = await documentOf(url)
    t.same(await lint(document), [], 'a strict linter finds nothing wrong')
    for (const [path, operations] of Object.entries(document.paths)) {
      const methods = Object.keys(operations).map((method) => method.toUpperCase())
      const called = path.replaceAll(/\{\w+\}/g, '1')
      const refused = await fetch(url + called, { method: 'DELETE' })
      t.equal(refused.status, 405, `${path} is served`)
      t.equal(refused.headers.get('allow'), methods.join(', '), `${path} takes what the document says`)
      for (const [method, { security }] of Object.entries(operations)) {
        const response = await fetch(url + called, { method: method.toUpperCase() })
        await response.arrayBuffer()
        const isPublic = security.some((needed) => Object.keys(needed).length === 0) || security.length === 0
        // Two calls share a path: one of them needs a token.
        if (path !== '/user/api_keys/jwt') t.equal(response.status === 401, !isPublic, `${method} ${path}`)
      }
    }
  }
})

t.test('they name the parameters, fields and files of endpoints, and those of a mode alone', async (t) => {
  const { platform } = await startScene(t)
  const { paths } = await documentOf(platform.url)
  const names = paths['/tasks/{task_uuid}']?.get?.parameters.map((one) => `${one.in} ${one.name}`)
  t.same(names, ['path task_uuid', 'query limit', 'query offset'])
  const content = paths['/tasks']?.post?.requestBody?.content ?? {}
  t.has(content['multipart/form-data']?.schema.properties, { task_name: {}, is_public: {}, file: {} })
  t.notOk('file' in (content['application/json']?.schema.properties ?? {}), 'a file comes in a form')
  const { payment } = await startPaymentScene(t, { mode: 'open' })
  const open = await documentOf(payment.url)
  t.notOk('/api/v1/user/register' in open.paths, 'nobody signs in')
  t.same(open.paths['/api/v1/billing']?.get?.security, [])
})

t.test('no other method and no other form of the path has the document', async (t) => {
  const { platform } = await startScene(t)
  for (const [method, path] of [
    ['POST', '/-/openapi.json'],
    ['OPTIONS', '/-/openapi.json'],
    ['GET', '/-/openapi.json/'],
    ['GET', '/-/OpenAPI.json'],
  ] as const) {
    t.equal((await fetch(platform.url + path, { method })).status, 404, `${method} ${path}`)
  }
  const head = await fetch(`${platform.url}/-/openapi.json`, { method: 'HEAD' })
  t.equal(head.status, 200)
})
