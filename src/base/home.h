// home.h - the user's home folder.
#ifndef SONDE_BASE_HOME_H
#define SONDE_BASE_HOME_H

// $HOME, else the folder that the user database names; NULL if there is none. Valid until the next
// call of getpwuid or setenv.
const char *home_folder(void);

#endif
