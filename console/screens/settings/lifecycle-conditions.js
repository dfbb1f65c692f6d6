import { formatBytes } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Pairs } from '../../parts/pairs.js'
import { one, Text } from './inputs.js'

const SIZES = ['ObjectSizeGreaterThan', 'ObjectSizeLessThan']
const CONDITIONS = ['Prefix', 'Tag', ...SIZES]

/** What has the conditions of a rule: the rule itself in the older form. */
const conditionsOf = (rule) => rule.child('Filter')?.child('And') ?? rule.child('Filter') ?? rule
const tagsOf = (rule) =>
  conditionsOf(rule)
    .all('Tag')
    .map((tag) => [tag.get('Key'), tag.get('Value') ?? ''])
/** Which objects a lifecycle rule is for, in words. */
export function conditionWords(rule) {
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

/** Writes the inputs of `Conditions` into a rule, in the form that it has. */
export function changeConditions(rule, values) {
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

/** The objects that a rule is for. */
export function Conditions({ rule }) {
  const place = conditionsOf(rule)
  const [tags, setTags] = useState(tagsOf(rule))
  return html`<fieldset>
    <legend>For all of</legend>
    <${Text} label="Keys that begin with" name="Prefix" defaultValue=${place.get('Prefix')} />
    <${Text} label="More bytes than" name=${SIZES[0]} type="number" min="0" defaultValue=${place.get(SIZES[0])} />
    <${Text} label="Less bytes than" name=${SIZES[1]} type="number" min="1" defaultValue=${place.get(SIZES[1])} />
    <${Pairs} rows=${tags} setRows=${setTags} word="tag" />
  </fieldset>`
}
