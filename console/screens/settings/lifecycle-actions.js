import { formatCount, visibleText } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'

const TIMES = {
  Days: 'Days after their creation',
  Date: 'From the day on',
  DaysAfterInitiation: 'Days after they began',
  NoncurrentDays: 'Days after a newer one came',
  ExpiredObjectDeleteMarker: '',
}
const NEWER = 'NewerNoncurrentVersions'
const ABORT = 'AbortIncompleteMultipartUpload'
const OLD = ['NoncurrentVersionExpiration', 'NoncurrentVersionTransition']
export const ACTIONS = ['Expiration', 'Transition', ...OLD, ABORT]

/** An action as the form names it: that on markers is an Expiration, too. */
const MARKERS = 'Markers'
const elementOf = (choice) => (choice === MARKERS ? 'Expiration' : choice.split(' ')[0])

const OFFERED = [
  'Expiration',
  ...['GLACIER', 'GLACIER_IR', 'DEEP_ARCHIVE'].map((name) => `Transition ${name}`),
  ...[OLD[0], `${OLD[1]} GLACIER`, `${OLD[1]} DEEP_ARCHIVE`, MARKERS, ABORT],
]

/** The actions of a rule, also those on markers and on versions that are not the newest. */
export const actionsOf = (rule) => rule.children.filter(({ name }) => ACTIONS.includes(name))
const timeOf = (action) => action.children.find(({ name }) => Object.hasOwn(TIMES, name))

function choiceOf(action) {
  if (timeOf(action)?.name === 'ExpiredObjectDeleteMarker') return MARKERS
  return [action.name, action.get('StorageClass')].filter(Boolean).join(' ')
}

/** What an action does, as in `Delete objects`. */
function wordsOf(choice) {
  const [name, storageClass] = choice.split(' ')
  const what = OLD.includes(name) ? 'versions that are replaced' : 'objects'
  if (choice === MARKERS) return 'Remove delete markers without versions'
  if (name === ABORT) return 'End unfinished uploads'
  return storageClass ? `Move ${what} to ${storageClass}` : `Delete ${what}`
}

/** An action in words. */
export function actionWords(action) {
  const { name, text = '' } = timeOf(action) ?? {}
  const words = wordsOf(choiceOf(action))
  if (name === 'ExpiredObjectDeleteMarker') return text === 'true' ? words : `${words} (off)`
  const newer = action.get(NEWER)
  const kept = newer === undefined ? '' : `, but keep the newest ${newer}`
  if (name === 'Date') return `${words} from ${text.slice(0, 10)} on`
  return `${words} after ${formatCount(Number(text), 'day')}${kept}`
}

/**
 * The action that the inputs of one row state.
 * @param before actions of the rule: what no input shows of one stays
 */
export function changedAction(choice, i, values, before) {
  const name = elementOf(choice)
  const [old, time, text, newer] = ['row', 'time', 'value', 'newer'].map((input) => values.getAll(input)[i])
  const action = before[old]?.name === name ? before[old] : new Element(name)
  for (const known of Object.keys(TIMES)) if (known !== time) action.replace(known, [])
  action.replace(time, [time === 'Date' ? `${text}T00:00:00.000Z` : text])
  if (OLD.includes(name)) action.replace(NEWER, [newer].filter(Boolean))
  const storageClass = choice.split(' ')[1]
  if (storageClass) action.replace('StorageClass', [storageClass])
  return action
}

/** What a rule does, and when. `row` is the place that an action has in the rule. */
export function Actions({ rule }) {
  const saved = actionsOf(rule).map((action, row) => {
    const { name, text } = timeOf(action) ?? {}
    return { id: row, row, choice: choiceOf(action), time: name, text, newer: action.get(NEWER) }
  })
  const [rows, setRows] = useState(saved.length > 0 ? saved : [{ id: 0, choice: OFFERED[0] }])
  const add = () => setRows([...rows, { id: Math.max(-1, ...rows.map(({ id }) => id)) + 1, choice: OFFERED[0] }])
  const change = (id, members) => setRows(rows.map((row) => (row.id === id ? { ...row, ...members } : row)))
  const remove = (id) => setRows(rows.filter((row) => row.id !== id))
  return html`<fieldset class="actions">
    <legend>Does</legend>
    ${rows.map((row, i) => html`<${Action} key=${row.id} row=${row} number=${i + 1} change=${(members) => change(row.id, members)} remove=${() => remove(row.id)} />`)}
    <button type="button" onClick=${add}>Add action</button>
  </fieldset>`
}

function timesOf(choice, time) {
  if (choice === MARKERS) return ['ExpiredObjectDeleteMarker']
  if (choice === ABORT) return ['DaysAfterInitiation']
  if (OLD.includes(elementOf(choice))) return ['NoncurrentDays']
  return time === 'Date' ? ['Date', 'Days'] : ['Days', 'Date']
}

function Action({ row: { row, choice, time, text, newer }, number, change, remove }) {
  const times = timesOf(choice, time)
  const chosen = times.includes(time) ? time : times[0]
  const type = chosen === 'Date' ? 'date' : 'number'
  const hidden = (name, value) => html`<input type="hidden" name=${name} value=${value} />`
  const value = html`<input key=${type} name="value" type=${type} min=${type === 'number' ? 0 : undefined} aria-label=${`Time of action ${number}`} required defaultValue=${type === 'date' ? text?.slice(0, 10) : text} />`
  const ofOld = OLD.includes(elementOf(choice))
  return html`<div class="pair">
    ${hidden('row', row)}
    <select name="action" aria-label=${`Action ${number}`} value=${choice} onChange=${(event) => change({ choice: event.target.value })}>
      ${[...new Set([...OFFERED, choice])].map((each) => html`<option value=${each}>${visibleText(wordsOf(each))}</option>`)}
    </select>
    ${
      choice === MARKERS
        ? html`${hidden('time', chosen)}${hidden('value', time === chosen ? text : 'true')}`
        : html`<select name="time" aria-label=${`When action ${number} comes`} value=${chosen} onChange=${(event) => change({ time: event.target.value })}>
            ${times.map((each) => html`<option value=${each}>${TIMES[each]}</option>`)}
          </select>
          ${value}`
    }
    ${ofOld ? html`<input name="newer" type="number" min="1" max="100" placeholder="Keep newest" aria-label=${`Versions that action ${number} keeps`} defaultValue=${newer} />` : hidden('newer', '')}
    <button type="button" onClick=${remove} aria-label=${`Remove action ${number}`}>Remove</button>
  </div>`
}
