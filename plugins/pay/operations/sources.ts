/** Page that describes the operations of this plugin. */
export const SOURCE = 'docs/pay.md'
