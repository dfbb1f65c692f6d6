/**
 * Settings of a bucket that the gateway cannot store: the type of each kind. A feature adds its kind where it is
 * defined, by `declare module './setting-types.js' { interface SettingTypes { cors: CorsConfiguration } }`; a plugin
 * adds one that has its own name, by `declare module 'dealgate'`. Values are plain JSON.
 */
// biome-ignore lint/suspicious/noEmptyInterface: filled in by the features
export interface SettingTypes {}
