/**
 * The plugins that are parts of S3, act on whole buckets, or manage and describe the server, by name. They run beside
 * those that the configuration lists, unless it lists `none`. Each is loaded when it runs.
 */
export const accounts = () => import('../plugins/accounts/index.js')
export const activity = () => import('../plugins/activity/index.js')
export const batch = () => import('../plugins/batch/index.js')
export const self = () => import('../plugins/self/index.js')
export const inventory = () => import('../plugins/inventory/index.js')
export const keys = () => import('../plugins/keys/index.js')
export const lifecycle = () => import('../plugins/lifecycle/index.js')
export const notifications = () => import('../plugins/notifications/index.js')
export const quota = () => import('../plugins/quota/index.js')
export const encryption = () => import('../plugins/encryption/index.js')
export const requests = () => import('../plugins/requests/index.js')
export const upkeep = () => import('../plugins/upkeep/index.js')
export const usage = () => import('../plugins/usage/index.js')
export const zip = () => import('../plugins/zip/index.js')
