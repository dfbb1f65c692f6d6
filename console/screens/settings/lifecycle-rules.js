import { html } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Check } from '../../parts/form.js'
import { one, Text } from './inputs.js'
import { ACTIONS, Actions, actionsOf, actionWords, changedAction } from './lifecycle-actions.js'
import { Conditions, changeConditions, conditionWords } from './lifecycle-conditions.js'
import { listed, Rules } from './rules.js'

/** When objects of a bucket expire or change their storage class. */
export const lifecycle = {
  name: 'Lifecycle rules',
  query: 'lifecycle',
  absent: 'NoSuchLifecycleConfiguration',
  // A document that is stored without it changes it.
  kept: 'x-amz-transition-default-minimum-object-size',
  hint: 'When objects are deleted or change their storage class.',
  View: Rules,
  word: 'lifecycle rule',
  root: 'LifecycleConfiguration',
  names: ['Rule'],
  columns: [
    listed('Id', 'ID'),
    listed('State', 'Status'),
    { name: 'For', cell: conditionWords },
    { name: 'Does', cell: (rule) => actionsOf(rule).map(actionWords).join('; ') },
  ],
  // A document has all rules in one form.
  start: (rules) => new Element('Rule', rules.some((rule) => rule.child('Prefix')) ? [new Element('Prefix')] : []),
  Fields: ({ rule }) => html`
    <${Text} label="Id" name="ID" defaultValue=${rule.get('ID')} />
    <${Check} label="Enabled" input=${{ name: 'Status', defaultChecked: rule.get('Status') !== 'Disabled' }} />
    <${Actions} rule=${rule} />
    <${Conditions} rule=${rule} />`,
  change(rule, values) {
    rule.replace('ID', one(values, 'ID'))
    rule.replace('Status', [values.has('Status') ? 'Enabled' : 'Disabled'])
    changeConditions(rule, values)
    const before = actionsOf(rule)
    const made = values.getAll('action').map((choice, i) => changedAction(choice, i, values, before))
    for (const name of ACTIONS)
      rule.replace(
        name,
        made.filter((action) => action.name === name),
      )
  },
}
