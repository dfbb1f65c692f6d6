import t, { type Test } from 'tap'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest, type TextAnswer } from '../../../support/sign/signed-request.js'
import { until } from '../../../support/waiting.js'
import { examplePlugin } from '../calls/example-plugin.js'

const owner = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }
const rights = [{ bucket: 'bucket', access: 'readwrite' }] as const
const maker = { ...owner, accessKeyId: 'maker', rights, actions: ['test:*'] }
const former = { ...owner, accessKeyId: 'former', rights }

async function start(t: Test) {
  const identities = [owner, maker, former]
  const { endpoint } = await startInProcess(t, 'full', { identities, plugins: [examplePlugin()] })
  const send = (method: string, path: string, query: Record<string, string> = {}, body = '', as = owner) =>
    signedRequest(endpoint, as, { method, path, query, body, headers: { prefer: 'wait=5' } })
  const jobs = async (path = '', query = {}, as = owner) => json(await send('GET', `/-/jobs/v1${path}`, query, '', as))
  const act = async (path: string, body: object = {}, as = owner) =>
    json(await send('POST', `/-/jobs/v1${path}`, {}, JSON.stringify(body), as))
  const make = async (How: string, N: number, as = owner) => {
    const answer = await signedRequest(endpoint, as, {
      method: 'POST',
      path: '/bucket/key',
      query: { 'x-test': '' },
      body: JSON.stringify({ How, N }),
      headers: { prefer: How === 'soon' || How === 'badly' ? 'wait=60' : 'wait=0' },
    })
    return answer.headers['x-dealgate-job-id'] as string
  }
  const reach = (id: string, status: string) =>
    until(`the job is ${status}`, async () => {
      const job = await jobs(`/${id}`)
      return job.Status === status && job
    })
  await send('PUT', '/bucket')
  return { send, jobs, act, make, reach }
}

const json = (answer: TextAnswer) => JSON.parse(answer.body)

t.test('looked at', async (t) => {
  const { send, jobs, make } = await start(t)
  const ids = [await make('soon', 1), await make('badly', 2), await make('soon', 3)]
  t.match(await jobs(`/${ids[0]}`), {
    ...{ JobId: ids[0], Operation: 'test:CreateThing', Status: 'Complete', Phase: 'Making', Resource: '/bucket/key' },
    ProgressSummary: { TotalNumberOfTasks: 0, Bytes: { Done: 0, Total: 0 } },
    ...{ CreationTime: /^\d{4}-.*Z$/, FailureReasons: [], Result: { Made: '/bucket/key' }, Links: {} },
  })
  const failure = { FailureCode: 'DealRejected', FailureReason: 'too cheap', Details: { Price: '1' } }
  t.match(await jobs(`/${ids[1]}`), { Status: 'Failed', FailureReasons: [failure], Result: null })
  t.match(await jobs(`/${ids[1]}/log`), { JobId: ids[1], Lines: [{ Text: 'DealRejected: too cheap' }] })
  const xml = await send('GET', `/-/jobs/v1/${ids[1]}`, { format: 'xml' })
  t.match(xml.body, `<Job xmlns="urn:dealgate:jobs:1"><JobId>${ids[1]}</JobId>`)
  t.match(xml.body, '<FailureReasons><member><FailureCode>DealRejected</FailureCode>')
  t.match(xml.body, '<Details><Entry><Name>Price</Name><Value>1</Value></Entry></Details>')

  const all = await jobs()
  t.same(
    all.Jobs.map(({ JobId }: { JobId: string }) => JobId),
    [...ids].reverse(),
    'the newest first',
  )
  const page = await jobs('', { 'max-items': '2' })
  t.match(page, { IsTruncated: true, Jobs: { length: 2 } })
  t.match(await jobs('', { 'continuation-token': page.NextContinuationToken }), {
    IsTruncated: false,
    Jobs: [{ JobId: ids[0] }],
  })
  t.match(await jobs('', { status: 'Failed' }), { Jobs: { length: 1 } })
  t.match(await jobs('', { plugin: 'tes' }), { Jobs: { length: 0 } })
  t.match(await jobs('', { status: 'Broken' }), { Code: 'InvalidArgument' })
  t.match(await jobs('/j-nothing'), { Code: 'NoSuchJob' })
  t.match(await jobs('/j-nothing/log'), { Code: 'NoSuchJob' })
})

t.test('cancelled, run again, settled', async (t) => {
  const { act, make, reach } = await start(t)
  const late = await make('late', 1)
  t.match(await act(`/${late}/cancel`), { Status: /Cancel/ })
  t.match(await reach(late, 'Cancelled'), { Status: 'Cancelled' })
  t.match(await act(`/${late}/retry`), { Status: 'New' })
  await act(`/${late}/cancel`)
  const done = await make('soon', 2)
  for (const what of ['cancel', 'retry', 'resolve'])
    t.match(await act(`/${done}/${what}`, what === 'resolve' ? { Status: 'Complete' } : {}), { Code: 'InvalidRequest' })
  const unknown = await make('nobody knows', 3)
  await reach(unknown, 'Unknown')
  t.match(await act(`/${unknown}/cancel`), { Code: 'InvalidRequest' })
  t.match(await act(`/${unknown}/resolve`), { Code: 'InvalidArgument', Details: { ArgumentName: 'Status' } })
  t.match(await act(`/${unknown}/resolve`, { Status: 'Failed', FailureCode: 'Whatever' }), {
    Code: 'InvalidArgument',
    Details: { ArgumentName: 'FailureCode' },
  })
  t.match(await act(`/${unknown}/resolve`, { status: 'Complete', result: { Made: 'by hand' } }), {
    Status: 'Complete',
    Result: { Made: 'by hand' },
  })
  const other = await make('nobody knows', 4)
  await reach(other, 'Unknown')
  t.match(await act(`/${other}/resolve`, { Status: 'Failed', FailureCode: 'DealRejected' }), {
    Status: 'Failed',
    FailureReasons: [{ FailureCode: 'DealRejected', FailureReason: 'The deal was rejected.' }],
  })
})

t.test('of others', async (t) => {
  const { jobs, act, make, reach } = await start(t)
  const own = await make('late', 1, maker)
  const others = await make('late', 2)
  t.match(await jobs('', {}, maker), { Jobs: [{ JobId: own }], IsTruncated: false }, 'with rights: its own')
  t.match(await jobs(`/${others}`, {}, maker), { Code: 'NoSuchJob' })
  t.match(await jobs('', {}, former), { Jobs: [] })
  for (const what of ['cancel', 'retry', 'resolve']) {
    const body = what === 'resolve' ? { Status: 'Complete' } : {}
    t.match(await act(`/${others}/${what}`, body, maker), { Code: 'NoSuchJob' }, what)
  }
  t.match(await jobs(), { Jobs: { length: 2 } }, 'without: all')
  await act(`/${own}/cancel`, {}, maker)
  await reach(own, 'Cancelled')
  t.match(await act(`/${own}/retry`, {}, maker), { Status: 'New' })
})
