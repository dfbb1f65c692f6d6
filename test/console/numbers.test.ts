import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { sdkFor } from '../support/programs/sdk.js'
import { send } from '../support/sign/send.js'
import { type ConsoleScene, forward, intercept, respond, startConsole, Tab } from './browser.js'

/** The numbers of buckets, and the overview. */

const HOUR = 3_600_000
const DAY = 24 * HOUR

t.test('the date at which a disk is full', async (t) => {
  const { fullAt, trendOf } = await import(pathToFileURL('console/lib/trend.js').href)
  const points = (perHour: number, count = 48) =>
    Array.from({ length: count }, (_, n) => ({ at: n * HOUR, value: 1000 + perHour * n + (n % 2) }))
  const { at, perDay } = fullAt(points(-10))
  t.ok(Math.abs(perDay + 240) < 2, `${perDay} a day`)
  t.ok(Math.abs(at - 100 * HOUR) < HOUR, 'where the line reaches zero')
  t.notOk('at' in fullAt(points(10)), 'never, where room grows')
  t.notOk('at' in fullAt(points(-0.1)), 'not within a year')
  t.equal(fullAt(points(-10, 20)), undefined, 'less than a day')
  t.equal(trendOf([]), undefined)
})

t.test('buckets with their numbers, and the overview', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { server, tab, accessible } = scene
  const put = (target: string, body?: Buffer) => send(server, { method: 'PUT', target, ...(body && { body }) })
  for (const name of ['photos', 'empty', 'versioned']) await put(`/${name}`)
  for (const key of ['a', 'b', 'c']) await put(`/photos/${key}`, Buffer.alloc(1024))
  const VersioningConfiguration = { Status: 'Enabled' } as const
  await sdkFor(t, server).putBucketVersioning({ Bucket: 'versioned', VersioningConfiguration })
  for (const size of [10, 2048]) await put('/versioned/a', Buffer.alloc(size))
  await send(server, { method: 'POST', target: '/photos?x-quota=', body: Buffer.from('{"Bytes":4096}') })
  await tab.signIn()

  await tab.goTo('#/buckets', '3 buckets with 4 objects, 5.0 KiB', 'On +1', '75% of 4.0 KiB')
  await accessible('buckets')
  t.same(await sorted(tab, 'Size'), ['empty', 'versioned', 'photos'])
  t.same(await sorted(tab, 'Quota'), ['empty', 'versioned', 'photos'])
  t.same(await sorted(tab, 'Versions'), ['empty', 'photos', 'versioned'])
  await tab.pick('Actions on photos', 'Delete')
  await tab.fill('Type photos to confirm', 'photos')
  await tab.click('button', 'Delete bucket', 'BucketNotEmpty')
  await tab.click('button', 'Cancel')
  await counted(tab)
  await many(t, tab)
  await overview(t, scene)
  const made = await send(server, {
    method: 'POST',
    target: '/-/keys/v1/limited-key-pair?format=json',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from('{"Rights":[{"Bucket":"photos","Access":"read"}]}'),
  })
  const { AccessKeyId: id, SecretAccessKey: secret } = JSON.parse(made.body.toString())
  const other = await Tab.open(t, scene.browser, server)
  await other.signIn({ pair: { id, secret } })
  await other.goTo('#/buckets', '1 bucket with 3 objects')
  await other.goTo('#/overview', 'This key pair may not see everything', 'Ready')
  t.notMatch(await other.text(), 'Traffic')
  t.same([...tab.complaints, ...other.complaints], [])
})

/** Names of the buckets after a click on the heading of a column. */
async function sorted(tab: Tab, column: string): Promise<unknown> {
  await tab.click('button', column)
  return tab.page.evaluate(
    `[...document.querySelectorAll('tbody tr')].map((row) => row.querySelector('a').textContent)`,
  )
}

/** Where the gateway keeps no numbers, a job counts. */
async function counted(tab: Tab): Promise<void> {
  const without = await intercept(tab, /\/-\/usage\/v1\/buckets/, async (request) => {
    const answer = (await (await forward(request)).json()) as { Buckets: object[] }
    const Counted = { Objects: 12, Bytes: 345, At: new Date().toISOString() }
    const Buckets = answer.Buckets.map((one) => ({ ...one, Numbers: undefined, ...('Quota' in one && { Counted }) }))
    await respond(request, { ...answer, Buckets })
  })
  await tab.click('button', 'Refresh', '12 just now')
  await tab.pick('Actions on versioned', 'Count objects', 'The count of versioned has ended: Complete.')
  await without()
}

/** A page of many buckets takes two requests; without the right to the first, their names alone are listed. */
async function many(t: Test, tab: Tab): Promise<void> {
  const names = Array.from({ length: 250 }, (_, i) => `bucket-${1000 + i}`)
  const asked: string[] = []
  let refused = false
  const other = await intercept(tab, /:\d+\/($|\?|-\/(access|usage)\/v1\/buckets)/, async (request) => {
    const { pathname, search, searchParams } = new URL(request.url())
    asked.push(pathname + search)
    const all = names.map((name) => `<Bucket><Name>${name}</Name></Bucket>`).join('')
    if (pathname === '/')
      return respond(request, `<ListAllMyBucketsResult><Buckets>${all}</Buckets></ListAllMyBucketsResult>`)
    if (pathname.includes('access'))
      return respond(request, { Buckets: names.slice(0, 2).map((Bucket, i) => ({ Bucket, Public: i === 1 })) })
    if (refused) return respond(request, { Code: 'AccessDenied', Message: 'no' }, 403)
    const shown = names.filter((name) => name.startsWith(searchParams.get('prefix') ?? ''))
    const numbers = (i: number) => ({
      Objects: i,
      Bytes: (i * 7919) % 250,
      NoncurrentVersions: 0,
      NoncurrentBytes: 0,
      DeleteMarkers: 0,
    })
    return respond(request, {
      Buckets: shown.map((Bucket, i) => ({ Bucket, Created: '2026-01-01T00:00:00Z', Numbers: numbers(i) })),
    })
  })
  await tab.click('button', 'Refresh', '250 buckets with 31,125 objects', '◉ Public')
  // What the screen has asked for before may come late, with the name of a bucket that is not here.
  const now = asked.filter((target) => target.includes('from=bucket-'))
  const usage = asked.filter((target) => target.includes('usage')).slice(-1)
  t.same(
    [...usage, ...now],
    ['/-/usage/v1/buckets?max-items=1000&public=false', '/-/access/v1/buckets?from=bucket-1000&max-items=250'],
  )
  const bySize = (await sorted(tab, 'Size')) as string[]
  const order = names.map((name, i) => [(i * 7919) % 250, name] as const).sort(([one], [other]) => one - other)
  t.same(
    bySize,
    order.map(([, name]) => name),
    'all of them, not those of a page alone',
  )
  await tab.fill('Names that begin with', 'bucket-12')
  await tab.click('button', 'Show', '50 buckets')
  refused = true
  await tab.goTo('#/buckets', '250 buckets')
  t.notMatch(await tab.text(), 'Not allowed')
  await other()
}

/** What is shown of a month that another server has had. */
async function overview(t: Test, { tab, accessible }: ConsoleScene): Promise<void> {
  const last = Math.floor(Date.now() / HOUR) * HOUR
  const hours = Array.from({ length: 700 }, (_, n) => ({
    Start: new Date(last - (699 - n) * HOUR).toISOString(),
    ...{
      Requests: n,
      ClientErrors: 1,
      ServerErrors: 0,
      BytesIn: 10,
      BytesOut: 2 ** 20,
      P50Milliseconds: 2,
      P99Milliseconds: 400,
    },
    ...{ StoredBytes: 2 ** 30 + n, FreeBytes: (1011 - n) * 2 ** 30 },
  }))
  const deal = {
    ...{ DealCid: 'bafy', Bucket: 'photos', Key: '<img src=x>\u202e', MinerId: 't01000', Status: 'StorageDealActive' },
    EstimatedExpiry: new Date(Date.now() + 5 * DAY).toISOString(),
  }
  const over = { DealCid: 'bafy2', Key: 'over', EstimatedExpiry: new Date(Date.now() - DAY).toISOString() }
  const answers: Readonly<Record<string, object>> = {
    'period=month': { IntervalSeconds: 3600, Intervals: hours },
    'ends-before': { Deals: [deal, { ...deal, ...over }] },
    '/spending': { Days: [{ Day: new Date().toISOString().slice(0, 10), Fil: '0.25' }] },
  }
  const told = await intercept(tab, /period=month|ends-before|\/spending/, (request) =>
    respond(request, Object.entries(answers).find(([part]) => request.url().includes(part))?.[1] ?? {}),
  )
  await tab.goTo('#/overview', 'No job, deal or task has failed.', 'Requests and errors', 'in 5 days', '<img src=x>')
  t.notMatch(await tab.text(), 'photos/over', 'what has ended does not end soon')
  await tab.sees(
    'Disk is full',
    'in 13 days',
    'a straight line through the free space of 700 hours',
    '24 GiB less each day',
  )
  await tab.click('link', 'Last 31 days', '0.25 FIL', 'Spending', '244,650')
  const labels = await tab.page.evaluate(
    `[...document.querySelectorAll('svg[role=img]')].map((svg) => svg.getAttribute('aria-label'))`,
  )
  t.match(labels, [
    'Requests and errors: 244,650 requests, 700 errors',
    /^Bytes: 6\.8 KiB received, 700 MiB sent/,
    'Time of requests: 99 % of the requests of an interval took 400 ms at most',
    'Stored bytes: 1.0 GiB now, 1.0 GiB at first',
    'Spending: 0.25 FIL on 1 day',
  ])
  await tab.click('summary', 'Time of requests in numbers', 'Half of them (p50)', '400 ms')
  await accessible('the overview of a month')
  await told()
}
