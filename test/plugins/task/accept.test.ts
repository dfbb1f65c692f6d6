import t, { type Test } from 'tap'
import { CSV, startRecorded } from './scene.js'

const DAY = 86_400

/** A piece of 2,048 bytes for 10,000,000 epochs at 0.1 fil per GiB and epoch, which rounds up. */
const LONG = '1.90734863282'

let requests = 0

interface Shown {
  readonly miner_id?: string | null
  readonly max_price?: string
  readonly bids?: object[]
}

async function start(t: Test) {
  const { platform, proxy, on, later, now, job } = await startRecorded(t, { reconcileAfterSeconds: 60 })
  const call = async (path: string, body: object, wait: number) => {
    const headers = { 'idempotency-key': `request-${requests++}`, prefer: `wait=${wait}` }
    const answer = await proxy.send('POST', `/-/task/v1/tasks${path}`, { body, headers })
    return { status: answer.status, json: JSON.parse(answer.body) }
  }
  /** What the platform shows of the task, one after the other. */
  const shows = (...states: Shown[]) =>
    on(
      'GET /tasks/u1',
      ...states.map(({ miner_id = null, max_price = '9', bids = [bid('New', '0.10')] }) => {
        const task = { task_id: 1, task_name: 'n', is_public: 1, miner_id, max_price }
        return [200, { status: 'success', data: { task, bid: bids } }] as [number, object]
      }),
    )
  return {
    ...{ on, shows, later, proxy, job },
    now: () => String(Math.floor(now() / 1000)),
    accept: (more: object = {}, wait = 60) =>
      call('/u1/accept', { MinerId: 'f01', Price: '0.1', File: CSV, ...more }, wait),
    /** Creates the task through this server. */
    create: (more: object) => {
      on('POST /tasks', [200, { status: 'success', data: { filename: 'f.csv', uuid: 'u1' } }])
      return call('', { TaskName: 'n', IsPublic: true, BidMode: '0', MaxPrice: '0.1', File: CSV, ...more }, 60)
    },
    /** Spent today, as a refusal tells it. */
    spent: async () => {
      const dear = { TaskName: 'dear', IsPublic: true, BidMode: '0', MaxPrice: '1000', File: CSV }
      return /of which (\S+) are spent/.exec((await call('', dear, 60)).json.Message)?.[1]
    },
    quote: (price: string) => proxy.ask('GET', `/-/task/v1/tasks/u1/quote?price=${price}`),
    puts: () => platform.requests.filter(({ method }) => method === 'PUT'),
  }
}

function bid(status: string, price: string, more: object = {}) {
  return { bid_id: 1, status, price, username: 'u', platform_user_info: { miners: [{ miner_id: 'f01' }] }, ...more }
}

const FREE = {}
const GIVEN = { miner_id: 'f01', bids: [bid('Won', '0.10')] }
const DONE = [200, { status: 'success', data: {} }] as [number, object]

t.test('a bid that is accepted once, though the answer is lost', async (t) => {
  const { on, shows, accept, job, later, puts } = await start(t)
  on('GET /tasks/u1', [404, { status: 'fail', message: 'no such task' }])
  t.match(await accept(), { json: { Code: 'NoSuchTask' } })
  shows(FREE)
  t.match(await accept({ Price: '0.2' }), { status: 409, json: { Message: /no bid of 0.2/ } })
  t.match(await accept({ File: undefined }), { json: { Code: 'DealTermsInvalid' } }, 'its cost is not known')
  on('PUT /uuid_tasks/u1', [404, {}])
  t.match(await accept(), { status: 501, json: { Code: 'NotImplemented', Message: /PUT \/uuid_tasks/ } })
  on('PUT /uuid_tasks/u1', [403, { status: 'fail', message: 'Only the poster' }])
  t.match(await accept(), { status: 403, json: { Code: 'AccessDenied', Message: /Only the poster/ } })
  t.equal(puts().length, 2)
  t.match(puts()[1]?.body, /name="miner_fid"\r\n\r\nf01\r\n.*file_source_url/s)

  on('PUT /uuid_tasks/u1', 'lost', DONE)
  const first = await accept({}, 0)
  await job(first.json.JobId, 'Unknown')
  shows(GIVEN)
  later(1)
  const expected = { TaskUuid: 'u1', MinerId: 'f01', Price: '0.10' }
  t.match((await job(first.json.JobId, 'Complete')).Result, expected, 'it had its effect')
  t.equal(puts().length, 3)
  t.match(await accept(), { status: 200, json: expected }, 'a task that has the provider by this bid')
  t.match(await accept({ Price: '0.01' }), { status: 409, json: { Message: /not by a bid of 0.01/ } })
  shows({ miner_id: 'f01', bids: [] })
  t.match(await accept(), { status: 409, json: { Message: /not by a bid of 0.1/ } }, 'by no bid at all')
  shows({ miner_id: 'f02' })
  t.match(await accept(), { status: 409, json: { Message: /f02 already/ } })
  t.equal(puts().length, 3)
})

t.test('a bid counts for the whole duration, and once a day', async (t) => {
  const { on, shows, accept, create, later, spent, puts, quote } = await start(t)
  on('PUT /uuid_tasks/u1', DONE)
  shows(FREE, FREE, GIVEN)
  t.match(await quote('0.1'), { Total: undefined, WithinCap: false }, 'a task of another server')
  t.equal((await accept()).status, 200)
  t.equal(await spent(), LONG, 'the longest duration, for a task that this server did not make')
  later(DAY)
  t.equal((await create({ Duration: 10_000_000 })).status, 200)
  t.equal(await spent(), LONG)
  t.match(await quote('0.1'), { Files: 1, Duration: 10_000_000, Total: LONG, LeftToday: '10', WithinCap: true })
  t.match(await quote('1'), { WithinCap: false })
  shows(FREE, FREE, GIVEN)
  t.equal((await accept({ File: undefined })).status, 200)
  t.equal(await spent(), LONG, 'the creation counts it already')
  shows({ bids: [bid('New', '0.2')] }, { bids: [bid('New', '0.2')] }, { miner_id: 'f01', bids: [bid('Won', '0.2')] })
  t.equal((await accept({ Price: '0.2' })).status, 200)
  t.equal(await spent(), '3.81469726563', 'and the rest of a dearer bid, whatever MaxPrice the platform shows')
  later(DAY)
  shows(FREE, FREE, GIVEN)
  t.equal((await accept({ File: undefined })).status, 200)
  t.equal(await spent(), LONG, 'another day has not counted it')
  later(DAY)
  const dear = { bids: [bid('New', '0.6')] }
  shows(dear)
  const sent = puts().length
  t.match(await accept({ Price: '0.6', File: undefined }), { json: { Code: 'SpendCapReached' } })
  t.equal(puts().length, sent)
})

t.test('the bid as it is when it is accepted', async (t) => {
  const { on, shows, accept, proxy, later, now, spent, puts } = await start(t)
  on('PUT /uuid_tasks/u1', DONE)
  const old = { created_on: now(), expire_days: 5 }
  shows({ bids: [bid('New', '0.1', old)] })
  later(6 * DAY)
  t.match(await accept(), { status: 409, json: { Message: /no bid of 0.1 .* open/ } }, 'its days are over')
  shows({ bids: [bid('Lost', '0.1')] })
  t.match(await accept(), { status: 409, json: { Message: /no bid of 0.1 .* open/ } }, 'it has lost')
  shows(FREE, { bids: [bid('New', '0.3')] })
  t.match(await accept(), { status: 409, json: { Message: /no bid of 0.1/ } }, 'it changed before the request')
  t.equal(puts().length, 0)
  t.equal(await spent(), '0')
  shows(FREE, FREE, { miner_id: 'f01', bids: [bid('Won', '0.3')] })
  const changed = await accept()
  t.match(changed, { status: 200, json: { Price: '0.3' } }, 'it changed together with the request')
  t.match(JSON.stringify(await proxy.ask('GET', `/-/jobs/v1/${changed.json.JobId}/log`)), /of 0.3 .* not of 0.1/)
  t.equal(await spent(), '5.72204589844')
  later(DAY)
  shows(FREE, FREE, { miner_id: 'f01', bids: [] })
  const unseen = await accept()
  t.equal(unseen.status, 200)
  t.notOk('Price' in unseen.json, 'a price that the platform does not show')
})
