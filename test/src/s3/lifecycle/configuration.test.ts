import fc from 'fast-check'
import t from 'tap'
import { DAY_MS } from '../../../../common/time.js'
import {
  configurationDocument,
  type LifecycleRule,
  readConfiguration,
} from '../../../../src/s3/lifecycle/configuration.js'
import type { LifecycleFilter } from '../../../../src/s3/lifecycle/filter.js'
import { dueAfter, expirationOf, outermostPrefixes, transitionOf } from '../../../../src/s3/lifecycle/rules.js'

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
  t.same((await one(rule(versions(3)))).noncurrentExpiration, { days: 3 })
  t.same((await one(rule(versions(1, 100)))).noncurrentExpiration, { days: 1, newer: 100 })
  t.same((await one(rule(versions(1), `<Filter>${TAG}</Filter>`))).noncurrentExpiration, { days: 1 })
  t.same((await one(rule(versions(1), '<Prefix/>'))).noncurrentExpiration, { days: 1 })
  const moves = [
    { days: 0, storageClass: 'GLACIER' },
    { days: 9, newer: 1, storageClass: 'DEEP' },
  ]
  t.same((await one(rule(moved(0) + moved(9, 1, 'DEEP')), ['GLACIER', 'DEEP'])).noncurrentTransitions, moves)
  t.equal((await read(Array.from({ length: 1000 }, () => rule(days(1))).join(''))).length, 1000)
})

const filtered = (content: string) => rule(days(1), `<Filter>${content}</Filter>`)
const TAG = '<Tag><Key>a</Key><Value/></Tag>'
const expiring = (content: string) => rule(`<Expiration>${content}</Expiration>`)
const markers = '<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>'
const transition = '<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>'
const noncurrent = (days: number | string, newer?: number | string, more = '') =>
  `<NoncurrentDays>${days}</NoncurrentDays>${newer === undefined ? '' : `<NewerNoncurrentVersions>${newer}</NewerNoncurrentVersions>`}${more}`
const versions = (...args: Parameters<typeof noncurrent>) =>
  `<NoncurrentVersionExpiration>${noncurrent(...args)}</NoncurrentVersionExpiration>`
const moved = (...[days, newer, storageClass = 'GLACIER']: Parameters<typeof noncurrent>) =>
  `<NoncurrentVersionTransition>${noncurrent(days, newer, `<StorageClass>${storageClass}</StorageClass>`)}</NoncurrentVersionTransition>`
const sized = (over: number, under: number) =>
  `<ObjectSizeGreaterThan>${over}</ObjectSizeGreaterThan><ObjectSizeLessThan>${under}</ObjectSizeLessThan>`

t.test('what is refused, and how', async (t) => {
  const refusals: Record<string, [what: string, rules: string, message?: RegExp][]> = {
    MalformedXML: [
      ['no rule', ''],
      ['too many rules', Array.from({ length: 1001 }, () => rule(days(1))).join('')],
      ['something unknown', `${rule(days(1))}<Other/>`, /Other/],
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
      ['days and date', expiring('<Days>1</Days><Date>2030-01-01</Date>')],
      ['no date', expiring('<Date>tomorrow</Date>')],
      ['delete markers and days', expiring(`<Days>1</Days>${markers}`)],
      ['no days of versions', rule('<NoncurrentVersionExpiration/>'), /NoncurrentDays/],
      ['no number of versions', rule(versions(1, 'all'))],
      ['versions that move nowhere', rule(moved(1).replace(/<StorageClass>.*<\/StorageClass>/, ''))],
    ],
    InvalidRequest: [
      ['a prefix too long', filtered(`<Prefix>${'x'.repeat(1025)}</Prefix>`)],
      ['two tags of one key', filtered(`<And>${TAG.repeat(2)}</And>`), /Duplicate Tag Keys/],
      ['sizes the wrong way round', filtered(`<And>${sized(9, 9)}</And>`)],
      ['less than nothing', filtered('<ObjectSizeLessThan>0</ObjectSizeLessThan>')],
      ['no action', rule(''), /At least one action/],
      ['delete markers with tags', rule(`<Expiration>${markers}</Expiration>`, `<Filter>${TAG}</Filter>`), /Tags/],
      ['uploads with tags', rule(abort, `<Filter>${TAG}</Filter>`), /Tags/],
      ['a number of versions without a filter', rule(versions(1, 2), '<Prefix/>'), /Filter/],
      ['both forms', rule(days(1)) + rule(days(1), '<Prefix/>'), /Lifecycle V2/],
    ],
    InvalidArgument: [
      ['no days', rule(days(0)), /positive integer/],
      ['too many days', rule(days(2_147_483_648))],
      ['no midnight', expiring('<Date>2030-01-01T00:00:01Z</Date>'), /midnight/],
      ['no newer versions', rule(versions(1, 0)), /between 1 and 100/],
      ['many newer versions', rule(versions(1, 101)), /between 1 and 100/],
      ['versions that moved before', rule(moved(-1)), /nonnegative/],
      ['a long id', rule(days(1), '<Filter/>', `<ID>${'x'.repeat(256)}</ID>`), /255/],
      ['an id twice', rule(days(1), '<Filter/>', '<ID>a</ID>').repeat(2), /unique/],
    ],
    InvalidTag: [['a bad tag', filtered(TAG.replace('>a<', '>a!<'))]],
    InvalidStorageClass: [
      ['a class that no plugin offers', rule(transition), /GLACIER/],
      ['one for versions', rule(moved(1)), /GLACIER/],
    ],
  }
  for (const [code, cases] of Object.entries(refusals))
    for (const [what, rules, message = /./] of cases) await t.rejects(read(rules), { code, message }, what)
  for (const one of [transition, moved(1)])
    await t.rejects(read(rule(one.repeat(2)), ['GLACIER']), { code: 'InvalidRequest' })
})

t.test('a rule is shown in the form in which it was written', async (t) => {
  const prefix = '<Prefix>a</Prefix>'
  for (const filter of ['<Filter></Filter>', prefix, '<Prefix></Prefix>', `<Filter>${prefix}</Filter>`]) {
    const newer = filter.startsWith('<Filter>') ? 5 : undefined
    const ofVersions = moved(7, newer, 'DEEP') + versions(9, newer)
    const given = `<Rule><ID>x</ID>${filter}<Status>Disabled</Status><Transition><Date>2030-01-01T00:00:00.000Z</Date><StorageClass>DEEP</StorageClass></Transition>${days(3)}${ofVersions}${abort}</Rule>`
    const rules = await read(given, ['DEEP'])
    t.match(configurationDocument({ rules }), given)
  }
})

t.test('midnight after the days are over', async (t) => {
  t.equal(dueAfter(Date.UTC(2014, 0, 15, 10, 30), 3), Date.UTC(2014, 0, 19), 'the example of the user guide')
  t.equal(dueAfter(Date.UTC(2014, 0, 15), 1), Date.UTC(2014, 0, 17), 'made at midnight')
  t.equal(dueAfter(Date.UTC(2014, 0, 15, 23, 59, 59, 999), 1), Date.UTC(2014, 0, 17))
  t.equal(dueAfter(Date.now(), 2_147_483_647), Number.POSITIVE_INFINITY, 'beyond what dates can say')
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4e12 }), fc.integer({ min: 0, max: 4000 }), (since, days) => {
      const at = dueAfter(since, days)
      return at % DAY_MS === 0 && at > since + days * DAY_MS && at - since - days * DAY_MS <= DAY_MS
    }),
  )
})

t.test('the soonest of several rules counts', async (t) => {
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
})

t.test('transitions: the last one that is due, of objects that are large enough', async (t) => {
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
})

const key = fc.string({ unit: fc.constantFrom(...'ab/ä𝒳'), maxLength: 8 })

t.test('no key is walked twice, and none that a rule is about is left out', async () => {
  fc.assert(
    fc.property(fc.array(key, { maxLength: 6 }), key, (prefixes, name) => {
      const outermost = outermostPrefixes(prefixes.map((prefix) => ({ filter: { form: 'filter', prefix } })))
      const wanted = prefixes.some((prefix) => name.startsWith(prefix))
      return outermost.filter((prefix) => name.startsWith(prefix)).length === (wanted ? 1 : 0)
    }),
    { numRuns: 1000 },
  )
})
