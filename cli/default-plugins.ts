/**
 * The plugins that run unless the configuration lists others, by name. Each is loaded when it runs. The standard ones
 * run beside them: `standard-plugins.ts`.
 */
export const deal = () => import('../plugins/deal/index.js')
export const pay = () => import('../plugins/pay/index.js')
export const task = () => import('../plugins/task/index.js')
