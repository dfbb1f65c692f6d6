import { formatBytes, formatCount, visibleText } from '../lib/format.js'
import { html, useState } from '../lib/html.js'
import { Element, parseXml } from '../lib/xml.js'
import { Confirm, Dialog } from '../parts/dialog.js'
import { Check, Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'
import { Pairs } from '../parts/pairs.js'
import { Table } from '../parts/table.js'

/**
 * The rules in a document of a bucket, as a table with a form for each. What a form does not know of a rule stays in it.
 * @param kind { word, root, names, columns, Fields, change(rule, values), start?(rules) }: names of the elements that
 *   are rules; `change` writes the values of the inputs of `Fields` into a rule
 * @param saved the document; '' for none
 * @param store takes the new document and the one that it is made from; '' for none
 */
export function Rules({ kind, saved, store }) {
  const [dialog, setDialog] = useState()
  const root = saved === '' ? new Element(kind.root) : parseXml(saved)
  const rules = root.children.filter(({ name }) => kind.names.includes(name))
  const open = (View, rule) => setDialog({ View, rule, rules, root, saved })
  /** Puts a rule, or none, in the place of one, or at the end. */
  const put = (made, { rule, root, saved }) => {
    const all = rule ? root.children.flatMap((one) => (one === rule ? made : one)) : [...root.children, ...made]
    return store(all.length === 0 ? '' : String(new Element(root.name, all, root.attributes)), saved)
  }
  const actions = {
    name: 'Actions',
    cell: (rule) => {
      const number = rules.indexOf(rule) + 1
      return html`<span class="buttons">
        <button type="button" onClick=${() => open(Change, rule)} aria-label=${`Change ${kind.word} ${number}`}>Change…</button>
        <button type="button" class="danger" onClick=${() => open(Remove, rule)} aria-label=${`Remove ${kind.word} ${number}`}>Remove…</button>
      </span>`
    },
  }
  return html`<${Table} caption=${`${kind.word}s`} rows=${rules} keyOf=${(rule) => rules.indexOf(rule)} columns=${[...kind.columns, actions]} empty="There is none." />
    <div class="buttons"><button type="button" onClick=${() => open(Change)}>Add ${kind.word}</button></div>
    ${dialog && html`<${dialog.View} kind=${kind} of=${dialog} put=${put} onClose=${() => setDialog(undefined)} />`}`
}

function Change({ kind, of, put, onClose }) {
  const rule = of.rule ?? kind.start?.(of.rules) ?? new Element(kind.names[0])
  const action = async (values, signal) => {
    const made = parseXml(String(rule))
    kind.change(made, values)
    await put([made], of)
    if (!signal.aborted) onClose()
  }
  return html`<${Dialog} title=${`${of.rule ? 'Change' : 'Add'} ${kind.word}`} onClose=${onClose}>
    <${Form} action=${action} submit="Save" onCancel=${onClose}><${kind.Fields} rule=${rule} /><//>
  <//>`
}

function Remove({ kind, of, put, onClose }) {
  return html`<${Confirm} title=${`Remove ${kind.word}`} submit="Remove" action=${() => put([], of)} onClose=${onClose}>
    <p>To undo this, add it again.</p>
    <pre tabindex="0" role="region" aria-label="What is removed">${String(of.rule).replace(/>(?=<[^/])/g, '>\n')}</pre>
  <//>`
}

// The forms of the rules of a bucket. The inputs have the names of the elements.

const textsOf = (element, name) => element.all(name).map(({ text }) => text)
const listed = (name, element) => ({ name, cell: (rule) => textsOf(rule, element).join(', ') })

function Text({ label, hint, kind, ...input }) {
  return html`<${Field} label=${label} hint=${hint} kind=${kind} input=${{ autocomplete: 'off', spellcheck: false, ...input }} />`
}

/** Texts, one a line. */
function Lines({ rule, name, ...more }) {
  return html`<${Text} kind="textarea" name=${name} rows="2" defaultValue=${textsOf(rule, name).join('\n')} ...${more} />`
}

function linesIn(values, name) {
  return values
    .get(name)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
}

/** One element, or none if its input is empty. */
function one(values, name) {
  return [values.get(name).trim()].filter(Boolean)
}

/** Boxes for what is known, and for what a rule has besides. */
function Choices({ legend, name, known, rule }) {
  const chosen = textsOf(rule, name)
  return html`<fieldset>
    <legend>${legend}</legend>
    ${[...new Set([...known, ...chosen])].map((value) => html`<${Check} label=${html`<${Name} text=${value} />`} input=${{ name, value, defaultChecked: chosen.includes(value) }} />`)}
  </fieldset>`
}

export const corsRules = {
  ...{ word: 'CORS rule', root: 'CORSConfiguration', names: ['CORSRule'] },
  columns: [listed('Id', 'ID'), listed('Origins', 'AllowedOrigin'), listed('Methods', 'AllowedMethod')],
  Fields: ({ rule }) => html`
    <${Text} label="Id" name="ID" defaultValue=${rule.get('ID')} />
    <${Lines} label="Origins" hint="One a line, such as https://example.com or https://*.example.com." rule=${rule} name="AllowedOrigin" required />
    <${Choices} legend="Methods" name="AllowedMethod" known=${['GET', 'HEAD', 'PUT', 'POST', 'DELETE']} rule=${rule} />
    <${Lines} label="Headers of requests" hint="One a line, or * for all." rule=${rule} name="AllowedHeader" />
    <${Lines} label="Headers of answers" hint="One a line, such as ETag. Pages can read these." rule=${rule} name="ExposeHeader" />
    <${Text} label="Seconds that browsers remember it" name="MaxAgeSeconds" type="number" min="0" defaultValue=${rule.get('MaxAgeSeconds')} />`,
  change(rule, values) {
    for (const name of ['ID', 'MaxAgeSeconds']) rule.replace(name, one(values, name))
    for (const name of ['AllowedOrigin', 'AllowedHeader', 'ExposeHeader']) rule.replace(name, linesIn(values, name))
    rule.replace('AllowedMethod', values.getAll('AllowedMethod'))
  },
}

const EVENTS = {
  ObjectCreated: ['*', 'Put', 'Post', 'Copy', 'CompleteMultipartUpload'],
  ObjectRemoved: ['*', 'Delete'],
  ObjectTagging: ['*', 'Put', 'Delete'],
  ObjectRestore: ['*', 'Post', 'Completed', 'Delete'],
  LifecycleExpiration: ['*', 'Delete'],
}
const ALL_EVENTS = Object.entries(EVENTS).flatMap(([family, names]) => names.map((name) => `s3:${family}:${name}`))

/** The kind of a destination, which is the name of its element, too. */
const destinationOf = ({ name }) => name.replace('Configuration', '')
const keyOf = (rule) => rule.child('Filter')?.child('S3Key')
const isOf = (filter, name) => filter.get('Name')?.toLowerCase() === name
const filterText = (rule, name) =>
  keyOf(rule)
    ?.all('FilterRule')
    .find((filter) => isOf(filter, name))
    ?.get('Value') ?? ''

export const notificationRules = {
  ...{ word: 'notification', root: 'NotificationConfiguration' },
  names: ['TopicConfiguration', 'QueueConfiguration', 'CloudFunctionConfiguration'],
  columns: [
    listed('Id', 'Id'),
    listed('Events', 'Event'),
    { name: 'Keys', cell: (rule) => `${filterText(rule, 'prefix')}*${filterText(rule, 'suffix')}` },
    { name: 'Sent to', cell: (rule) => rule.get(destinationOf(rule)) },
  ],
  Fields: ({ rule }) => html`
    <${Text} label="Id" name="Id" defaultValue=${rule.get('Id')} />
    <${Text} label="Sent to" hint="A webhook of the server." name="Destination" required defaultValue=${rule.get(destinationOf(rule)) ?? 'arn:dealgate:webhook:::'} />
    <${Text} label="Keys that begin with" name="prefix" defaultValue=${filterText(rule, 'prefix')} />
    <${Text} label="Keys that end with" name="suffix" defaultValue=${filterText(rule, 'suffix')} />
    <${Choices} legend="Events" name="Event" known=${[...ALL_EVENTS, 's3:LifecycleTransition']} rule=${rule} />`,
  change(rule, values) {
    rule.replace('Id', one(values, 'Id'))
    rule.replace(destinationOf(rule), one(values, 'Destination'))
    rule.replace('Event', values.getAll('Event'))
    const key = keyOf(rule) ?? new Element('S3Key')
    const others = key.all('FilterRule').filter((filter) => !isOf(filter, 'prefix') && !isOf(filter, 'suffix'))
    const made = ['prefix', 'suffix']
      .filter((name) => values.get(name) !== '')
      .map((name) => new Element('FilterRule', [new Element('Name', name), new Element('Value', values.get(name))]))
    key.replace('FilterRule', [...made, ...others])
    const filter = rule.child('Filter') ?? new Element('Filter')
    filter.replace('S3Key', key.children.length > 0 ? [key] : [])
    rule.replace('Filter', filter.children.length > 0 ? [filter] : [])
  },
}

const SIZES = ['ObjectSizeGreaterThan', 'ObjectSizeLessThan']
const CONDITIONS = ['Prefix', 'Tag', ...SIZES]
const ACTIONS = ['Expiration', 'Transition', 'AbortIncompleteMultipartUpload']
const TIMES = {
  Days: 'Days after their creation',
  Date: 'From the day on',
  DaysAfterInitiation: 'Days after they began',
}
const KNOWN_TIMES = [...Object.keys(TIMES), 'ExpiredObjectDeleteMarker']

/** What has the conditions of a rule: the rule itself in the older form. */
const conditionsOf = (rule) => rule.child('Filter')?.child('And') ?? rule.child('Filter') ?? rule
const tagsOf = (rule) =>
  conditionsOf(rule)
    .all('Tag')
    .map((tag) => [tag.get('Key'), tag.get('Value') ?? ''])
const actionsOf = (rule) => rule.children.filter(({ name }) => ACTIONS.includes(name))
const timeOf = (action) => action.children.find(({ name }) => KNOWN_TIMES.includes(name))
const choiceOf = (action) => [action.name, action.get('StorageClass')].filter(Boolean).join(' ')

function wordsOf(value) {
  const [name, storageClass] = value.split(' ')
  if (name === 'Expiration') return 'Delete objects'
  return storageClass ? `Move objects to ${storageClass}` : 'End unfinished uploads'
}

function conditionWords(rule) {
  const place = conditionsOf(rule)
  const [more, less] = SIZES.map((name) => place.get(name))
  return [
    `${place.get('Prefix') ?? ''}*`,
    ...tagsOf(rule).map((tag) => tag.join('=')),
    more && `more than ${formatBytes(Number(more))}`,
    less && `less than ${formatBytes(Number(less))}`,
  ]
    .filter(Boolean)
    .join(', ')
}

function actionWords(action) {
  const { name, text = '' } = timeOf(action) ?? {}
  const days = TIMES[name] && `after ${formatCount(Number(text), 'day')}`
  return `${wordsOf(choiceOf(action))} ${name === 'Date' ? `from ${text.slice(0, 10)} on` : (days ?? name)}`
}

export const lifecycleRules = {
  ...{ word: 'lifecycle rule', root: 'LifecycleConfiguration', names: ['Rule'] },
  columns: [
    listed('Id', 'ID'),
    listed('State', 'Status'),
    { name: 'For', cell: conditionWords },
    { name: 'Does', cell: (rule) => actionsOf(rule).map(actionWords).join('; ') },
  ],
  // A document has all rules in one form.
  start: (rules) => new Element('Rule', rules.some((rule) => rule.child('Prefix')) ? [new Element('Prefix')] : []),
  Fields: LifecycleFields,
  change(rule, values) {
    rule.replace('ID', one(values, 'ID'))
    rule.replace('Status', [values.has('Status') ? 'Enabled' : 'Disabled'])
    changeConditions(rule, values)
    const before = actionsOf(rule)
    const made = values.getAll('action').map((value, i) => {
      const [name, storageClass] = value.split(' ')
      const [old, time, text] = ['row', 'time', 'value'].map((input) => values.getAll(input)[i])
      const action = before[old]?.name === name ? before[old] : new Element(name)
      for (const known of KNOWN_TIMES) if (known !== time) action.replace(known, [])
      action.replace(time, [time === 'Date' ? `${text}T00:00:00.000Z` : text])
      if (storageClass) action.replace('StorageClass', [storageClass])
      return action
    })
    for (const name of ACTIONS)
      rule.replace(
        name,
        made.filter((action) => action.name === name),
      )
  },
}

function changeConditions(rule, values) {
  const place = conditionsOf(rule)
  const prefix = values.get('Prefix')
  const tags = values
    .getAll('NAME')
    .map((name, i) => [new Element('Key', name), new Element('Value', values.getAll('VALUE')[i])])
  const made = [
    ...(prefix === '' ? [] : [new Element('Prefix', prefix)]),
    ...tags.map((tag) => new Element('Tag', tag)),
    ...SIZES.flatMap((name) => one(values, name).map((size) => new Element(name, size))),
  ]
  if (place.child('Prefix') && place === rule && made.every(({ name }) => name === 'Prefix')) {
    rule.replace('Prefix', [prefix])
    return
  }
  const own = place === rule ? [] : new Set([rule.child('Filter'), place])
  const others = [...own].flatMap(({ children }) =>
    children.filter(({ name }) => ![...CONDITIONS, 'And'].includes(name)),
  )
  const all = [...made, ...others]
  rule.replace('Prefix', [])
  rule.replace('Filter', [new Element('Filter', all.length > 1 ? [new Element('And', all)] : all)])
}

function LifecycleFields({ rule }) {
  const place = conditionsOf(rule)
  const [tags, setTags] = useState(tagsOf(rule))
  return html`
    <${Text} label="Id" name="ID" defaultValue=${rule.get('ID')} />
    <${Check} label="Enabled" input=${{ name: 'Status', defaultChecked: rule.get('Status') !== 'Disabled' }} />
    <${Actions} rule=${rule} />
    <fieldset>
      <legend>For all of</legend>
      <${Text} label="Keys that begin with" name="Prefix" defaultValue=${place.get('Prefix')} />
      <${Text} label="More bytes than" name=${SIZES[0]} type="number" min="0" defaultValue=${place.get(SIZES[0])} />
      <${Text} label="Less bytes than" name=${SIZES[1]} type="number" min="1" defaultValue=${place.get(SIZES[1])} />
      <${Pairs} rows=${tags} setRows=${setTags} word="tag" />
    </fieldset>`
}

const OFFERED = ['Expiration', 'Transition GLACIER', 'Transition DEEP_ARCHIVE', 'AbortIncompleteMultipartUpload']

/** What a rule does, and when. `row` is the place that an action has in the rule. */
function Actions({ rule }) {
  const saved = actionsOf(rule).map((action, row) => {
    const { name, text } = timeOf(action) ?? {}
    return { id: row, row, value: choiceOf(action), time: name, text }
  })
  const [rows, setRows] = useState(saved.length > 0 ? saved : [{ id: 0, value: OFFERED[0] }])
  const add = () => setRows([...rows, { id: Math.max(-1, ...rows.map(({ id }) => id)) + 1, value: OFFERED[0] }])
  const change = (id, members) => setRows(rows.map((row) => (row.id === id ? { ...row, ...members } : row)))
  return html`<fieldset>
    <legend>Does</legend>
    ${rows.map(({ id, row, value, time, text }, i) => {
      const uploads = value === OFFERED[3]
      const times = uploads ? ['DaysAfterInitiation'] : [...new Set(['Days', 'Date', time ?? 'Days'])]
      const chosen = times.includes(time) ? time : times[0]
      const type = chosen === 'Date' ? 'date' : TIMES[chosen] ? 'number' : 'text'
      return html`<div class="pair" key=${id}>
        <input type="hidden" name="row" value=${row} />
        <select name="action" aria-label=${`Action ${i + 1}`} value=${value} onChange=${(event) => change(id, { value: event.target.value })}>
          ${[...new Set([...OFFERED, value])].map((each) => html`<option value=${each}>${visibleText(wordsOf(each))}</option>`)}
        </select>
        <select name="time" aria-label=${`When action ${i + 1} comes`} value=${chosen} onChange=${(event) => change(id, { time: event.target.value })}>
          ${times.map((each) => html`<option value=${each}>${TIMES[each] ?? each}</option>`)}
        </select>
        <input key=${type} name="value" type=${type} min=${type === 'number' ? 0 : undefined} aria-label=${`Time of action ${i + 1}`} required defaultValue=${type === 'date' ? text?.slice(0, 10) : text} />
        <button type="button" onClick=${() => setRows(rows.filter((each) => each.id !== id))} aria-label=${`Remove action ${i + 1}`}>Remove</button>
      </div>`
    })}
    <button type="button" onClick=${add}>Add action</button>
  </fieldset>`
}
