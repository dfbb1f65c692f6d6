import { createHash } from 'node:crypto'
import t from 'tap'
import { z } from 'zod'
import { Query } from '../../../common/query.js'
import { listResources, readables } from '../../../plugins/self/virtual-bucket.js'
import type { Context } from '../../../src/api/context.js'
import type { S3Request } from '../../../src/api/request.js'
import { defineCall } from '../../../src/plugins/calls/define-call.js'
import { createTable } from '../../../src/plugins/table.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { send } from '../../support/sign/send.js'

const ids = Array.from({ length: 250 }, (_, i) => `id ${String(i).padStart(3, '0')}%2Fé`)
const reading = (path: string, members?: () => AsyncIterable<Record<string, string>>) =>
  defineCall({
    name: `Read${path}`,
    source: 'here',
    summary: 'Says which one it is.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path },
    result: z.object({ Id: z.string().optional() }),
    ...(members && { members }),
    answer: async ({ request }) => ({ Id: request.params.Id }),
  })
const rows = [
  reading('/-/one/v1/things'),
  reading('/-/one/v1/things/{Id}', async function* () {
    for (const Id of ['no/segment', '', '..', ...ids]) yield { Id }
  }),
  reading('/-/two/v1/nothing/{Id}', async function* () {}),
  reading('/-/two/v1/secret/{Id}'),
].map((operation) => ({ plugin: operation.name, operation }))

const server = await startDealgate(t)

t.test('pages of what is there, in byte order, folded at the delimiter', async (t) => {
  const request = { headers: {}, query: new Query(''), method: 'GET', signal: undefined } as unknown as S3Request
  const list = (query: object) =>
    listResources(readables(rows), { prefix: '', delimiter: '', after: '', limit: 1000, ...query }, request, {
      checks: { requireAction() {} },
    } as unknown as Context)
  const names = (page: Awaited<ReturnType<typeof list>>) =>
    page.entries.map((entry) => (entry.kind === 'prefix' ? entry.prefix : entry.key))
  t.same(names(await list({ delimiter: '/' })), ['one/', 'two/'])
  t.same(names(await list({ delimiter: '/', prefix: 'one/v1/' })), ['one/v1/things', 'one/v1/things/'])
  t.same(names(await list({ delimiter: '/', after: 'one/' })), ['two/'])
  t.same(names(await list({ prefix: 'one/v1/things/id 000' })), ['one/v1/things/id 000%2Fé'])
  t.same(names(await list({ prefix: 'three' })), [])
  const all: string[] = []
  for (let after = ''; ; ) {
    const page = await list({ after })
    all.push(...names(page))
    t.ok(page.entries.length <= 100)
    if (!page.truncated) break
    after = all.at(-1) as string
  }
  t.same(all, ['one/v1/things', ...ids.map((id) => `one/v1/things/${id}`)])
})

t.test('over HTTP', async (t) => {
  const ask = (method: string, target: string) => send(server, { method, target })
  for (const target of ['/-/openapi.json', '/-/jobs/v1', '/-/live', '/-/capabilities']) {
    const got = await ask('GET', target)
    const head = await ask('HEAD', target)
    t.equal(got.status, 200, target)
    const etag = `"${createHash('md5').update(got.body).digest('hex')}"`
    t.match(got.headers, { etag, 'last-modified': / GMT$/ })
    t.match(head, { status: 200, headers: { etag, 'content-length': String(got.body.length) } })
    t.ok(JSON.parse(got.body.toString()))
  }
  const { body } = await ask('GET', '/-/openapi.json')
  const { openapi, paths } = JSON.parse(body.toString())
  t.equal(openapi, '3.1.0')
  t.match(paths['/-/jobs/v1'].get, { operationId: 'jobs_ListJobs_GET', responses: { 200: {} } })
  for (const call of ['x-deal', 'x-deal-retrieve'])
    t.match(paths[`/{Bucket}/{Key}#${call}`].post.responses, { 200: {}, 202: { headers: { Location: {} } } }, call)
  const capabilities = JSON.parse((await ask('GET', '/-/capabilities')).body.toString())
  t.match(capabilities, { Region: 'us-east-1', Gateway: { Variant: 'full', Assumptions: [] } })
  t.match(
    capabilities.Operations.find(({ Name }: { Name: string }) => Name === 'GetJob'),
    { Plugin: 'jobs', Method: 'GET', Route: '/-/jobs/v1/{JobId}' },
  )
  for (const target of ['/-', '/-/']) {
    t.match((await ask('GET', `${target}?list-type=2`)).body.toString(), /<Key>openapi\.json<\/Key>/)
    t.match((await ask('GET', `${target}?location=`)).body.toString(), /LocationConstraint/)
    t.equal((await ask('HEAD', target)).status, 200)
    t.equal((await ask('PUT', target)).status, 200)
    t.match(await ask('DELETE', target), { status: 405 })
  }
  t.notMatch((await ask('GET', '/')).body.toString(), /<Name>-<\/Name>/, 'it is no bucket of anybody')
  t.match(await ask('GET', '/-/nothing'), { status: 404, headers: { 'x-amzn-errortype': 'NoSuchKey' } })
  t.match(await ask('GET', '/-/jobs/v1/j-none/cancel'), { status: 405 })
  t.equal((await fetch(`${server.endpoint}/-?list-type=2`)).status, 403)
})

t.test('slashes part names as they were sent, and an encoded one is part of a name', async (t) => {
  const { select } = createTable([{ name: 'rows', operations: rows.map(({ operation }) => operation) }])
  const chosen = (path: string) => {
    const { operation, params } = select({
      method: 'GET',
      resource: 'service',
      path,
      query: new Query(''),
      headers: {},
    })
    return [operation.on.path, params.Id]
  }
  const one = '/-/one/v1/things/{Id}'
  t.same(chosen('/-/one/v1/things'), ['/-/one/v1/things', undefined])
  t.same(chosen('/-/%6Fne/v1/things'), ['/-/one/v1/things', undefined], 'other characters mean the same either way')
  t.same(chosen('/-/one/v1/things/a%2Fb'), [one, 'a/b'])
  t.same(chosen('/-/one/v1/things/a%252Fb'), [one, 'a%2Fb'], 'decoded once')
  t.same(chosen('/-/one/v1/things/%C3%A9\u00c3\u00a9'), [one, 'éé'])
  for (const id of ids)
    t.same(chosen(`/-/one/v1/things/${encodeURIComponent(id)}`), [one, id], 'by its key in the list')
  for (const path of ['/-/one%2Fv1/things', '/-/one/v1%2Fthings', '/-/one/v1/things/a/b', '/-//one/v1/things'])
    t.throws(() => chosen(path), { code: 'NoSuchKey' }, path)
  for (const path of ['/-/one/v1/%zz', '/-/one/v1/things/%FF'])
    t.throws(() => chosen(path), { code: 'InvalidURI' }, path)

  const get = (target: string) => send(server, { method: 'GET', target })
  for (const name of ['a%2Fb', 'a%00b', 'x-jobs:a', '..%2F..', '%EF%BF%BE', 'a'.repeat(2000)])
    t.match((await get(`/-/jobs/v1/${name}`)).body.toString(), '"NoSuchJob"', name)
  t.match(await get('/-/jobs/v1/%zz'), { status: 400, body: /InvalidURI/ })
  t.equal((await get('/-/jobs%2Fv1')).status, 404)
  for (const target of ['/-%2Fjobs%2Fv1', '/%2D/jobs/v1'])
    t.match(await get(target), { status: 400, code: 'InvalidBucketName' })
})
