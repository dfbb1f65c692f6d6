import { document, element } from '../../common/xml/xml.js'
import type { NotificationRule } from './configuration.js'
import { arnOfWebhook } from './delivery/webhooks.js'
import { elementOf } from './read-configuration.js'

export function configurationDocument(rules: readonly NotificationRule[]): string {
  return document('NotificationConfiguration', rules.map(ruleElement).join(''))
}

function ruleElement(rule: NotificationRule): string {
  const name = elementOf(rule.kind)
  const filters = [filterRule('Prefix', rule.prefix), filterRule('Suffix', rule.suffix)].join('')
  return [
    `<${name}>`,
    element('Id', rule.id),
    element(rule.kind, arnOfWebhook(rule.webhook)),
    ...rule.events.map((event) => element('Event', event)),
    filters === '' ? '' : `<Filter><S3Key>${filters}</S3Key></Filter>`,
    `</${name}>`,
  ].join('')
}

function filterRule(name: string, value: string | undefined): string {
  return value === undefined ? '' : `<FilterRule>${element('Name', name)}${element('Value', value)}</FilterRule>`
}
