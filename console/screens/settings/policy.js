import { sendJson } from '../../lib/api.js'
import { html } from '../../lib/html.js'
import { jsonPlaces, lineAt, lineOf } from '../../lib/places.js'
import { without } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Choice, Lines, linesIn, one, Text } from './inputs.js'
import { Rules } from './rules.js'

/** What the server finds in a policy that is not saved yet, beside the lines. */
async function check(bucket, text) {
  const json = { Bucket: bucket, Policy: text }
  // A key pair that may store the policy need not have the right to have it checked before.
  const answer = await sendJson(session.value, { path: '/-/access/v1/policy-findings', json }).catch(
    without('AccessDenied'),
  )
  const places = jsonPlaces(text)
  return (answer?.Findings ?? []).map(({ Level, Statement, Message }) => {
    const [from, to] = places.get(`/Statement/${Statement - 1}`) ?? places.get('/Statement') ?? [0, text.length]
    const own = Level === 'error' ? lineOf(text, from, to, Message, true) : undefined
    return {
      level: Level,
      line: own ?? (Statement === undefined ? undefined : lineAt(text, from)),
      message: Message,
    }
  })
}

const manyOf = (value) => [value ?? []].flat()

/** Principals as lines: `*`, an account or key pair, or `Service: name`. */
function principalLines({ Principal: who }) {
  if (typeof who !== 'object' || who === null) return manyOf(who)
  return Object.entries(who).flatMap(([kind, ids]) => manyOf(ids).map((id) => (kind === 'AWS' ? id : `${kind}: ${id}`)))
}

function principalOf(lines) {
  if (lines.length === 1 && lines[0] === '*') return '*'
  const found = {}
  for (const line of lines) {
    const [, kind = 'AWS', id = line] = /^([A-Za-z]+): (.*)$/.exec(line) ?? []
    found[kind] = [...(found[kind] ?? []), id]
  }
  return Object.fromEntries(Object.entries(found).map(([kind, ids]) => [kind, oneOrMany(ids)]))
}

const oneOrMany = (list) => (list.length === 1 ? list[0] : list)

/** What the form does not show of a statement, and keeps. */
const othersOf = (statement) =>
  Object.keys(statement).filter((name) => !['Sid', 'Effect', 'Principal', 'Action', 'Resource'].includes(name))

const list = (name, member) => ({ name, cell: (statement) => manyOf(statement[member]).join(', ') })

/** Who may do what with a bucket and its objects. */
export const policy = {
  name: 'Bucket policy',
  query: 'policy',
  absent: 'NoSuchBucketPolicy',
  json: true,
  member: 'Statement',
  empty: { Version: '2012-10-17' },
  word: 'statement',
  hint: 'Who may do what, also without a signature. The server checks it before it is saved.',
  check,
  View: Rules,
  columns: [
    list('Id', 'Sid'),
    list('Effect', 'Effect'),
    {
      name: 'Who',
      cell: (statement) => principalLines(statement).join(', ') || (statement.NotPrincipal && 'all but some'),
    },
    list('Actions', 'Action'),
    list('On', 'Resource'),
    { name: 'Besides', cell: (statement) => othersOf(statement).join(', ') },
  ],
  start: (_, bucket) => ({
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:GetObject',
    Resource: `arn:aws:s3:::${bucket}/*`,
  }),
  Fields: ({ rule }) => html`
    <${Text} label="Id" name="Sid" defaultValue=${rule.Sid} />
    <${Choice} label="Effect" name="Effect" of=${['Allow', 'Deny'].map((word) => [word, word])} chosen=${rule.Effect} />
    ${rule.NotPrincipal === undefined && html`<${Lines} label="Who" hint="One a line: * for everybody, the canonical id of an account, the ARN of a key pair, or Service: name." name="Principal" required texts=${principalLines(rule)} />`}
    ${rule.NotAction === undefined && html`<${Lines} label="Actions" hint="One a line, such as s3:GetObject." name="Action" required texts=${manyOf(rule.Action)} />`}
    ${rule.NotResource === undefined && html`<${Lines} label="On" hint="One a line: arn:aws:s3:::BUCKET for the bucket, arn:aws:s3:::BUCKET/* for its objects." name="Resource" required texts=${manyOf(rule.Resource)} />`}
    ${othersOf(rule).length > 0 && html`<p class="quiet">The statement also has ${othersOf(rule).join(', ')}: this stays, and the JSON shows it.</p>`}`,
  change(statement, values) {
    const [sid] = one(values, 'Sid')
    if (sid === undefined) delete statement.Sid
    else statement.Sid = sid
    statement.Effect = values.get('Effect')
    const who = values.has('Principal') && linesIn(values, 'Principal')
    // As it was written, unless it was changed.
    if (who && who.join('\n') !== principalLines(statement).join('\n')) statement.Principal = principalOf(who)
    for (const name of ['Action', 'Resource'].filter((member) => values.has(member)))
      if (linesIn(values, name).join('\n') !== manyOf(statement[name]).join('\n'))
        statement[name] = oneOrMany(linesIn(values, name))
  },
}
