import { deepEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { DAY_MS } from '../../../src/common/time.js'
import { outermostPrefixes, transitionOf } from '../../../src/s3/lifecycle/bucket-pass.js'
import {
  configurationDocument,
  type LifecycleFilter,
  type LifecycleRule,
  readConfiguration,
} from '../../../src/s3/lifecycle/configuration.js'
import { type Candidate, dueAfter, dueAt, expirationOf, matches } from '../../../src/s3/lifecycle/rules.js'

const wrap = (rules: string) => Buffer.from(`<LifecycleConfiguration>${rules}</LifecycleConfiguration>`)
const read = (rules: string, classes: readonly string[] = []) =>
  readConfiguration(wrap(rules), (name) => classes.includes(name))
const rule = (content: string, filter = '<Filter/>', more = '') =>
  `<Rule>${more}${filter}<Status>Enabled</Status>${content}</Rule>`
const days = (n: number | string) => `<Expiration><Days>${n}</Days></Expiration>`
const abort =
  '<AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>'

t.test('what is accepted', async (t) => {
  const one = async (text: string, classes?: readonly string[]) => {
    const [found] = await read(text, classes)
    const { id, enabled, ...rest } = found as LifecycleRule
    t.ok(id.length > 0 && enabled)
    return rest
  }
  const accepts = async (filter: string, read: LifecycleFilter, written: number | string = 1) =>
    t.same(await one(rule(days(written), filter)), { filter: read, expiration: { days: Number(written) } })
  await accepts('<Filter/>', { form: 'filter' })
  await accepts('<Prefix>logs/</Prefix>', { form: 'prefix', prefix: 'logs/' }, ' 30 ')
  await accepts('<Filter><Prefix> </Prefix></Filter>', { form: 'filter', prefix: ' ' })
  const tags = [{ key: 'a', value: '' }]
  await accepts('<Filter><Tag><Key>a</Key><Value/></Tag></Filter>', { form: 'filter', tags })
  const both = '<Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value>2</Value></Tag>'
  await accepts(`<Filter><And><Prefix>p</Prefix>${both}${sized(0, 9)}</And></Filter>`, {
    form: 'and',
    prefix: 'p',
    tags: ['a1', 'b2'].map(([key = '', value = '']) => ({ key, value })),
    greaterThan: 0,
    lessThan: 9,
  })
  const midnight = '2030-01-02T00:00:00'
  for (const date of ['2030-01-02', `${midnight}Z`, `${midnight}.000Z`, midnight, '2030-01-02T02:00:00+02:00'])
    t.same((await one(expiring(`<Date>${date}</Date>`))).expiration, { date: Date.UTC(2030, 0, 2) }, date)
  t.same((await one(rule(abort))).abortDays, 7)
  t.same((await one(expiring(markers))).expiration, { expiredMarkers: true })
  const atOnce = '<Transition><Days>0</Days><StorageClass>GLACIER</StorageClass></Transition>'
  t.same((await one(rule(atOnce), ['GLACIER'])).transitions, [{ days: 0, storageClass: 'GLACIER' }])
  t.equal((await read(Array.from({ length: 1000 }, () => rule(days(1))).join(''))).length, 1000)
})

const filtered = (content: string) => rule(days(1), `<Filter>${content}</Filter>`)
const TAG = '<Tag><Key>a</Key><Value/></Tag>'
const expiring = (content: string) => rule(`<Expiration>${content}</Expiration>`)
const markers = '<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>'
const transition = '<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>'
const versions = '<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>'
const sized = (over: number, under: number) =>
  `<ObjectSizeGreaterThan>${over}</ObjectSizeGreaterThan><ObjectSizeLessThan>${under}</ObjectSizeLessThan>`

t.test('what is refused, and how', async (t) => {
  const refusals: Record<string, [what: string, rules: string, message?: RegExp][]> = {
    MalformedXML: [
      ['no rule', ''],
      ['too many rules', Array.from({ length: 1001 }, () => rule(days(1))).join('')],
      ['something unknown', `${rule(days(1))}<Other/>`, /Other/],
      ['no status', `<Rule><Filter/>${days(1)}</Rule>`],
      ['another status', `<Rule><Filter/><Status>enabled</Status>${days(1)}</Rule>`],
      ['neither filter nor prefix', rule(days(1), '')],
      ['both', rule(days(1), '<Prefix>a</Prefix><Filter/>')],
      // Taken for a filter without conditions, they would be about every object of the bucket.
      ['a filter of text', filtered('logs/'), /Filter/],
      ['an And of text', filtered('<And>logs/</And>'), /And/],
      ['a prefix of elements', filtered('<Prefix><Value>logs/</Value></Prefix>')],
      ['two conditions without And', filtered(sized(1, 9)), /And/],
      ['an unknown condition', filtered('<Suffix>a</Suffix>'), /Suffix/],
      ['an empty action', rule('<Expiration/>')],
      ['half days', rule(days('1.5'))],
      ['days and date', expiring('<Days>1</Days><Date>2030-01-01</Date>')],
      ['no date', expiring('<Date>tomorrow</Date>')],
      ['delete markers and days', expiring(`<Days>1</Days>${markers}`)],
    ],
    InvalidRequest: [
      ['a prefix too long', filtered(`<Prefix>${'x'.repeat(1025)}</Prefix>`)],
      ['two tags of one key', filtered(`<And>${TAG.repeat(2)}</And>`), /Duplicate Tag Keys/],
      ['sizes the wrong way round', filtered(`<And>${sized(9, 9)}</And>`)],
      ['a negative size', filtered('<ObjectSizeGreaterThan>-1</ObjectSizeGreaterThan>')],
      ['less than nothing', filtered('<ObjectSizeLessThan>0</ObjectSizeLessThan>')],
      ['no action', rule(''), /At least one action/],
      ['delete markers with tags', rule(`<Expiration>${markers}</Expiration>`, `<Filter>${TAG}</Filter>`), /Tags/],
      ['uploads with tags', rule(abort, `<Filter>${TAG}</Filter>`), /Tags/],
      ['both forms', rule(days(1)) + rule(days(1), '<Prefix/>'), /Lifecycle V2/],
    ],
    InvalidArgument: [
      ['no days', rule(days(0)), /positive integer/],
      ['too many days', rule(days(2_147_483_648))],
      ['no midnight', expiring('<Date>2030-01-01T00:00:01Z</Date>'), /midnight/],
      ['midnight elsewhere', expiring('<Date>2030-01-01T00:00:00+01:00</Date>')],
      ['uploads at once', rule(abort.replace('7', '0')), /positive integer/],
      ['a long id', rule(days(1), '<Filter/>', `<ID>${'x'.repeat(256)}</ID>`), /255/],
      ['an id twice', rule(days(1), '<Filter/>', '<ID>a</ID>').repeat(2), /unique/],
    ],
    InvalidTag: [['a bad tag', filtered(TAG.replace('>a<', '>a!<'))]],
    NotImplemented: [
      ['versions that expire', rule(versions), /NoncurrentVersionExpiration/],
      ['versions that move', rule(`${days(1)}<NoncurrentVersionTransition/>`), /NoncurrentVersionTransition/],
    ],
    InvalidStorageClass: [['a class that no plugin offers', rule(transition), /GLACIER/]],
  }
  for (const [code, cases] of Object.entries(refusals))
    for (const [what, rules, message = /./] of cases) await t.rejects(read(rules), { code, message }, what)
  await t.rejects(read(rule(transition.repeat(2)), ['GLACIER']), { code: 'InvalidRequest' })
})

const text = fc.string({ unit: fc.constantFrom(...'ab/ &<ä文𝒳'), maxLength: 8 })
/** Records of the usual prototype. */
const record = <T>(model: { [name in keyof T]: fc.Arbitrary<T[name]> }) => fc.record(model, { noNullPrototype: true })
const tag = record({ key: fc.constantFrom('a', 'b', 'c'), value: fc.constantFrom('', '1', '2') })
const tags = fc.uniqueArray(tag, { maxLength: 3, selector: ({ key }) => key })
const filter = record({ prefix: text, tags, greaterThan: fc.nat(50), more: fc.integer({ min: 1, max: 50 }) }).map(
  ({ tags: some, greaterThan, more, ...rest }): LifecycleFilter => ({
    ...{ form: 'and', ...rest, greaterThan, lessThan: greaterThan + more },
    ...(some.length > 0 && { tags: some }),
  }),
)
const when = fc.oneof(
  record({ days: fc.integer({ min: 1, max: 400 }) }),
  record({ date: fc.integer({ min: 0, max: 30_000 }).map((day) => day * DAY_MS) }),
)
const settings = fc.array(record({ enabled: fc.boolean(), filter, expiration: when }), { minLength: 1, maxLength: 5 })

t.test('what is kept is what was given', async (t) => {
  await fc.assert(
    fc.asyncProperty(settings, async (some) => {
      const rules: LifecycleRule[] = some.map((each, i) => ({ id: `rule <${i}>`, ...each }))
      deepEqual(await readConfiguration(Buffer.from(configurationDocument({ rules })), () => false), rules)
    }),
    { numRuns: 200 },
  )
  const prefix = '<Prefix>a</Prefix>'
  for (const filter of ['<Filter></Filter>', prefix, '<Prefix></Prefix>', `<Filter>${prefix}</Filter>`]) {
    const given = `<Rule><ID>x</ID>${filter}<Status>Disabled</Status><Transition><Date>2030-01-01T00:00:00.000Z</Date><StorageClass>DEEP</StorageClass></Transition>${days(3)}${abort}</Rule>`
    const rules = await read(given, ['DEEP'])
    t.match(configurationDocument({ rules }), given, 'shown in the form in which it was written')
  }
})

t.test('a rule matches exactly the keys, sizes and tags that it names', (t) => {
  fc.assert(
    fc.property(filter, text, fc.nat(110), tags, (filter, key, size, given) => {
      const expected =
        key.startsWith(filter.prefix ?? '') &&
        size > (filter.greaterThan ?? -1) &&
        size < (filter.lessThan ?? Number.POSITIVE_INFINITY) &&
        (filter.tags ?? []).every((want) => given.some((tag) => tag.key === want.key && tag.value === want.value))
      const candidate: Candidate = { key, size, tags: given, lastModified: 1 }
      return (
        matches(filter, candidate) === expected && (!expected || matches(filter, { ...candidate, tags: undefined }))
      )
    }),
    { numRuns: 2000 },
  )
  t.end()
})

t.test('midnight after the days are over', (t) => {
  t.equal(dueAfter(Date.UTC(2014, 0, 15, 10, 30), 3), Date.UTC(2014, 0, 19), 'the example of the user guide')
  t.equal(dueAfter(Date.UTC(2014, 0, 15), 1), Date.UTC(2014, 0, 17), 'made at midnight')
  t.equal(dueAfter(Date.UTC(2014, 0, 15, 23, 59, 59, 999), 1), Date.UTC(2014, 0, 17))
  t.equal(dueAfter(Date.now(), 2_147_483_647), Number.POSITIVE_INFINITY, 'beyond what dates can say')
  t.equal(dueAt({ days: 1 }, 0), Number.POSITIVE_INFINITY, 'what has no known age does not grow old')
  t.equal(dueAt({ days: 1 }, Date.UTC(1, 0, 1)), Number.POSITIVE_INFINITY)
  t.equal(dueAt({ date: 5 * DAY_MS }, 0), 5 * DAY_MS)
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4e12 }), fc.integer({ min: 0, max: 4000 }), (since, days) => {
      const at = dueAfter(since, days)
      return at % DAY_MS === 0 && at > since + days * DAY_MS && at - since - days * DAY_MS <= DAY_MS
    }),
  )
  t.end()
})

t.test('the soonest of several rules counts', (t) => {
  const made = Date.UTC(2030, 0, 1, 12)
  const rules: LifecycleRule[] = [
    { id: 'month', enabled: true, filter: { form: 'filter' }, expiration: { days: 30 } },
    { id: 'week', enabled: true, filter: { form: 'filter', prefix: 'a/' }, expiration: { days: 7 } },
    { id: 'day', enabled: false, filter: { form: 'filter' }, expiration: { days: 1 } },
    { id: 'markers', enabled: true, filter: { form: 'filter' }, expiration: { expiredMarkers: true } },
  ]
  const of = (key: string) => expirationOf({ rules }, { key, size: 1, tags: [], lastModified: made })
  t.match(of('a/x'), { rule: { id: 'week' }, at: Date.UTC(2030, 0, 9) })
  t.match(of('x'), { rule: { id: 'month' }, at: Date.UTC(2030, 1, 1) })
  t.equal(expirationOf({ rules: rules.slice(2) }, { key: 'a', size: 1, tags: [], lastModified: made }), undefined)
  t.end()
})

t.test('transitions: the last one that is due, of objects that are large enough', (t) => {
  const made = Date.UTC(2030, 0, 1, 12)
  const transitions = [
    { days: 30, storageClass: 'GLACIER' },
    { days: 90, storageClass: 'DEEP' },
  ]
  const rules: LifecycleRule[] = [{ id: 'r', enabled: true, filter: { form: 'filter' }, transitions }]
  const of = (size: number, day: number, minimumTransitionSize = 'all_storage_classes_128K' as const, used = rules) => {
    const candidate = { key: 'k', size, tags: [], lastModified: made }
    return transitionOf({ rules: used, minimumTransitionSize }, candidate, made + day * DAY_MS)
  }
  t.equal(of(200_000, 29), undefined)
  t.equal(of(200_000, 31), 'GLACIER')
  t.equal(of(200_000, 91), 'DEEP')
  t.equal(of(1000, 91), undefined)
  t.equal(of(1000, 91, 'varies_by_storage_class' as never), 'GLACIER', 'archives take small objects too')
  const sized = rules.map((each) => ({ ...each, filter: { form: 'filter' as const, greaterThan: 10 } }))
  t.equal(of(1000, 91, undefined, sized), 'DEEP', 'a rule that speaks of size means it')
  t.end()
})

t.test('no key is walked twice, and none that a rule is about is left out', (t) => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 6 }), text, (prefixes, key) => {
      const outermost = outermostPrefixes(prefixes.map((prefix) => ({ filter: { form: 'filter', prefix } })))
      const wanted = prefixes.some((prefix) => key.startsWith(prefix))
      return outermost.filter((prefix) => key.startsWith(prefix)).length === (wanted ? 1 : 0)
    }),
    { numRuns: 1000 },
  )
  t.end()
})
