import { html } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Choices, one, Text, textsOf } from './inputs.js'
import { listed, Rules } from './rules.js'

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

/** Which events of a bucket are sent where. */
export const notifications = {
  name: 'Notifications',
  query: 'notification',
  // An empty document stands for none.
  none: '<NotificationConfiguration/>',
  isNone: (text) => !/<\w+Configuration>/.test(text),
  hint: 'Which events are sent to which webhook of the server, such as arn:dealgate:webhook:::name.',
  View: Rules,
  word: 'notification',
  root: 'NotificationConfiguration',
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
    <${Choices} legend="Events" name="Event" known=${[...ALL_EVENTS, 's3:LifecycleTransition']} chosen=${textsOf(rule, 'Event')} />`,
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
