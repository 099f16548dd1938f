// Whose page this is: that of a service, at /console/, or that of a report alone, at /report/.
export const IS_REPORT = /^\/report(\/|$)/.test(location.pathname ?? "");
